import { estimateTokens } from '@annals/messages'
import type { Decision } from './curate.js'
import type { Candidate } from './gates.js'
import type { Prompt } from './prompts.js'

/** Where a model is, and who asks. */
export interface ModelAddress {
  url: string
  name: string
  key?: string | undefined
}

/** Tokens that were sent to a model, and that it answered. */
export interface ModelTokens {
  tokens_in: number
  tokens_out: number
}

export interface ModelAnswer extends ModelTokens {
  text: string
}

/**
 * A model gave no useful answer. `is_away`: nobody would get one now, so asking waits; otherwise it is about this input.
 * The message is shown to the project.
 */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure'

  constructor(
    message: string,
    readonly is_away: boolean,
    /** Tokens that were used nevertheless. */
    readonly tokens: ModelTokens = { tokens_in: 0, tokens_out: 0 },
  ) {
    super(message)
  }
}

/** Of what one call may count: more would make sums that JSON cannot hold exactly. */
const TOKENS_MAX = 100_000_000
/** Tokens of an answer, where a budget has to be kept before the answer is there. */
const ANSWER_TOKENS = 1_000

/** What a prompt costs at least, where nobody says: servers that do not are not free, whatever they answer. */
export function sentTokens({ system, user }: Prompt): number {
  return estimateTokens(system) + estimateTokens(user)
}

/** What a call will cost, before it is made. */
export function expectedTokens(prompt: Prompt): number {
  return sentTokens(prompt) + ANSWER_TOKENS
}

/** What a server calls a chat completion; nobody has checked any of it. */
interface Completion {
  choices?: readonly { finish_reason?: unknown; message?: { content?: unknown } }[]
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null
}

/** The text of a chat completion, and what it cost. @throws ModelFailure */
export function answerOf(completion: unknown, prompt: Prompt): ModelAnswer {
  const { choices, usage } = typeof completion === 'object' ? ((completion ?? {}) as Completion) : {}
  const choice = Array.isArray(choices) ? choices[0] : undefined
  const text: unknown = choice?.message?.content
  const tokens = {
    tokens_in: countOf(usage?.prompt_tokens) || sentTokens(prompt),
    tokens_out: countOf(usage?.completion_tokens) || estimateTokens(typeof text === 'string' ? text : ''),
  }
  if (choice?.finish_reason === 'length')
    throw new ModelFailure('The model’s answer was cut off: it was too long.', false, tokens)
  if (typeof text !== 'string' || text === '')
    throw new ModelFailure('The model gave no answer, or refused to.', false, tokens)
  return { text, ...tokens }
}

function countOf(tokens: unknown): number {
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0 && (tokens as number) <= TOKENS_MAX
    ? (tokens as number)
    : 0
}

/** What an answer with an HTTP status of failure means, without what the server said, which may be anything. */
export function failureOfStatus(status: number): ModelFailure {
  const means =
    status === 429
      ? ': its quota or rate is exhausted'
      : status < 405 && status > 400
        ? ': check its key, URL and name'
        : ''
  const isOfInput = status === 400 || status === 413 || status === 422
  return new ModelFailure(`The model’s server answered ${status}${means}.`, !isOfInput)
}

const exact = <P extends Record<string, object>>(properties: P) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
const list = (items: object) => ({ type: 'array', items })
const orNull = (type: string) => ({ anyOf: [{ type }, { type: 'null' }] })
const TEXT = { type: 'string' }
const INTEGER = { type: 'integer' }

/** What a model is asked for, by step: JSON schemas that go to it, and that its answer is checked against. */
export const ANSWER_SCHEMAS = {
  reflect: exact({
    statements: list(
      exact({
        kind: { enum: ['procedure', 'pitfall', 'fact', 'preference'] },
        text: TEXT,
        tool: orNull('string'),
        cites: list(exact({ run: TEXT, seq: INTEGER, quote: TEXT })),
      }),
    ),
  }),
  curate: exact({
    decisions: list(
      exact({
        candidate: INTEGER,
        action: { enum: ['add', 'support', 'contradict', 'nothing'] },
        statement: orNull('integer'),
      }),
    ),
  }),
  compact: exact({ summary: { type: 'string', pattern: '\\S' } }),
} as const

export type Step = keyof typeof ANSWER_SCHEMAS

/** What a model answers, by step, once it was checked. */
export interface StepAnswer {
  reflect: { statements: Candidate[] }
  curate: { decisions: Decision[] }
  compact: { summary: string }
}

/** A model's JSON without what PostgreSQL cannot hold; undefined if it is none. */
export function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text, (_, value) =>
      typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\uFFFD') : value,
    )
  } catch {
    return undefined
  }
}
