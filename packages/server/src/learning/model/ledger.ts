import { createHash } from 'node:crypto'
import { newId } from '@annals/kits/ids.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import {
  ANSWER_SCHEMAS,
  expectedTokens,
  type ModelAddress,
  type ModelAnswer,
  ModelFailure,
  type ModelTokens,
  type Prompt,
  parseAnswer,
  type Step,
  type StepAnswer,
} from '@annals/learning'
import Type, { Compile } from '#typebox'
import { ADD_MODEL_TOKENS, BEGIN_CALL, DURABLE, END_CALL } from './call_queries.js'
import type { AskModel } from './openai_model.js'

const CHECKS = {
  reflect: Compile(Type.Unsafe<StepAnswer['reflect']>(ANSWER_SCHEMAS.reflect)),
  curate: Compile(Type.Unsafe<StepAnswer['curate']>(ANSWER_SCHEMAS.curate)),
  compact: Compile(Type.Unsafe<StepAnswer['compact']>(ANSWER_SCHEMAS.compact)),
} as const

/** A question, and its budgets for 24 hours. */
export interface Asking {
  database: Database
  ask: AskModel
  address: ModelAddress
  project_id: string
  /** null: the summary of a session is no space's. */
  space_id: string | null
  session_ids: readonly string[]
  space_max: number
  project_max: number
  signal: AbortSignal
}

export interface LedgerAnswer<S extends Step> {
  call_id: string
  answer: StepAnswer[S]
}

/** A budget does not allow a call. The message is shown to the project. */
export class BudgetExhausted extends Error {
  override readonly name = 'BudgetExhausted'
}

/** The space, or a session that the model was to be shown, is gone. */
export class SourceGone extends Error {
  override readonly name = 'SourceGone'
}

/**
 * Asks a model, unless it has answered this input before. An answer is stored before anything is made of it, so that it
 * is paid for once whatever happens then. @throws ModelFailure, BudgetExhausted, SourceGone
 */
export async function askOnce<S extends Step>(
  asking: Asking,
  step: S,
  prompt: Prompt,
): Promise<LedgerAnswer<S> | null> {
  const { database, project_id, space_id, session_ids, address, space_max, project_max } = asking
  const hash = createHash('sha256')
    // Of a curator, the same question is the same whichever session leads to it.
    .update(JSON.stringify([step, step === 'curate' ? [] : session_ids, prompt.system, prompt.user]))
    .digest('hex')
  const estimate = expectedTokens(prompt)
  const asked = [space_id, newId(), hash, step, address.name, session_ids, estimate]
  const said = (await call(database, BEGIN_CALL, project_id, ...asked, space_max, project_max)) ?? 'gone'
  const [word, call_id = '', ...rest] = said.split(' ')
  switch (word) {
    case 'send':
      return send(asking, step, prompt, call_id, estimate)
    case 'answered':
      return { call_id, answer: JSON.parse(rest.join(' ')) }
    case 'applied':
      return null
    case 'space':
      throw new BudgetExhausted('The space’s budget of model tokens for 24 hours is used up.')
    case 'project':
      throw new BudgetExhausted(
        'The project’s quota max_model_tokens_per_day is used up for today. This goes on tomorrow, in UTC.',
      )
    default:
      throw new SourceGone()
  }
}

async function send<S extends Step>(
  { database, ask, address, project_id, signal }: Asking,
  step: S,
  prompt: Prompt,
  call_id: string,
  estimate: number,
): Promise<LedgerAnswer<S>> {
  const schema = ANSWER_SCHEMAS[step]
  const end = (answer: string | null, error: string | null, { tokens_in, tokens_out }: ModelTokens) =>
    database.transaction(async (connection) => {
      await connection.query(DURABLE, [])
      const call = [project_id, call_id, answer, error, estimate - tokens_in, tokens_out]
      const ended = await connection.query(END_CALL, call)
      const correction = tokens_in + tokens_out - estimate
      if (ended[0]) await connection.query(ADD_MODEL_TOKENS, [project_id, ended[0].sent_at!, correction])
      return ended
    })
  try {
    const given = await ask(address, { prompt, schema_name: step, schema, signal })
    const answer = readAnswer(step, given)
    const kept = await end(JSON.stringify(answer), null, given)
    if (kept.length === 0) throw new SourceGone()
    return { call_id, answer }
  } catch (error) {
    if (error instanceof ModelFailure) await end(null, error.message, error.tokens)
    throw error
  }
}

function readAnswer<S extends Step>(step: S, { text, ...used }: ModelAnswer): StepAnswer[S] {
  const check = CHECKS[step]
  const value = parseAnswer(text)
  if (!check.Check(value)) {
    // The place of a superfluous member would be a word of the model's.
    const named = (check.Errors(value) as { keyword: string; instancePath: string }[]).find(
      ({ keyword }) => keyword !== 'boolean',
    )
    const place = named?.instancePath || '/'
    throw new ModelFailure(
      `The model’s answer is not what it was asked for, at ${JSON.stringify(place)}.`,
      false,
      used,
    )
  }
  return value as StepAnswer[S]
}
