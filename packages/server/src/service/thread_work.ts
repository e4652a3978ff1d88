import {
  findErrors,
  nearestStatements,
  type RuleFindings,
  readSkillHead,
  spaceContext,
} from '@annals/learning'
import {
  type FactsOf,
  type MediaFacts,
  type MessageFormat,
  mediaFacts,
  StoredRenderer,
  type StoredText,
} from '@annals/messages'
import { type ContextMessage, contextMessage, joinedMessage, type StoredSeq } from '@annals/messages/context'
import { type FitMessage, type FitOptions, FitToSend } from '@annals/messages/fit'
import {
  entryText,
  indexedWords,
  type Match,
  matchTerms,
  type SearchedEntry,
  type SearchTerm,
} from '@annals/messages/search'
import { figuresOfLog, type LogEntry, type LogFigures } from '@annals/messages/session'
import { readMessageForm, readSkillForm } from '../blobs/read_form.js'
import { AnnalsError } from '../errors.js'
import { BODIES, type BodyOperation } from '../http/request/bodies.js'
import { type TakenBytes, takeOutBytes } from '../http/request/take_out_bytes.js'
import {
  type AttachmentLimits,
  type BodyOutcome,
  bodyTooLarge,
  readBodyJson,
  type TakeBody,
} from '../http/request/taken_body.js'
import { bodyValidator, type Validate } from '../http/request/validate.js'
import { storedPartsJson, storedTokens } from '../log/append/message_entry.js'
import { logEntries } from '../log/log_entries.js'
import { type FittedList, inStep } from '../log/render/fitted_list.js'
import type { Row } from '../postgres/database.js'

export type FormOperation = 'addMessage' | 'createSkill'

/**
 * Request work that grows with what a caller sent or stored; large work runs on the thread beside the event loop.
 * Arguments and results are copied between threads, so they are texts and numbers.
 */
export class ThreadWork {
  private readonly validators = new Map<BodyOperation, Validate>()
  private readonly lists = new Map<number, FitToSend>()
  private readonly renderers = new Map<number, StoredRenderer>()
  readonly messageParts = storedPartsJson
  readonly nearestStatements = nearestStatements
  readonly mediaFacts = mediaFacts
  readonly skillHead = readSkillHead
  readonly spaceContext = spaceContext

  /**
   * Processes a body as on the event loop: the same functions in the same order. With `limits`, the bytes of attachments
   * are taken out of it first.
   */
  takeBody(operation: BodyOperation, bytes: Uint8Array, limits?: AttachmentLimits): BodyOutcome {
    const [schema, take] = BODIES[operation]
    const sent = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const { rest_bytes_max = Number.POSITIVE_INFINITY, blob_bytes_max = 0 } = limits ?? {}
    const { body, taken: attachments } = takeOutBytes(sent, rest_bytes_max, blob_bytes_max)
    if (body.length > rest_bytes_max) return { stage: 'reading', error: bodyTooLarge(rest_bytes_max) }
    const json = readBodyJson(body)
    if (json instanceof AnnalsError) return { stage: 'reading', error: json }
    let validate = this.validators.get(operation)
    if (!validate) {
      validate = bodyValidator(schema)
      this.validators.set(operation, validate)
    }
    const { error, value } = validate(json.value)
    if (error) return { stage: 'validation', error }
    try {
      const taken = (take as TakeBody<unknown, unknown>)(value, json.text, json.bytes, factsIn(attachments))
      return { stage: 'taken', text: json.text, taken, attachments }
    } catch (error) {
      if (error instanceof AnnalsError) return { stage: 'taking', error }
      throw error
    }
  }

  /** The same for what was sent as a form: a message, or a skill, which has no attachments in its fields. */
  async takeForm(
    operation: FormOperation,
    content_type: string,
    bytes: Uint8Array,
    limits: AttachmentLimits,
  ): Promise<BodyOutcome> {
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const is_message = operation === 'addMessage'
    const form = is_message
      ? await readMessageForm(content_type, body, limits.blob_bytes_max)
      : await readSkillForm(content_type, body)
    if (form instanceof AnnalsError) return { stage: 'reading', error: form }
    const files = form.taken.map(({ sha256, bytes }) => ({ sha256, bytes }))
    const outcome = this.takeBody(operation, form.body, is_message ? limits : undefined)
    return outcome.stage === 'taken'
      ? { ...outcome, attachments: [...files, ...outcome.attachments] }
      : outcome
  }

  /** The items that each message becomes. A conversation continues from call to call under one number. */
  renderMessages(conversation: number, format: MessageFormat, messages: StoredText[]): string[][] {
    let renderer = this.renderers.get(conversation)
    if (!renderer) {
      renderer = new StoredRenderer(format)
      this.renderers.set(conversation, renderer)
    }
    return messages.map((message) => renderer.render(message))
  }

  /** The tokens of stored messages, by what is known of the blobs in them. */
  storedTokens(
    messages: Array<{ format: MessageFormat; data: string }>,
    facts: Array<[sha256: string, facts: MediaFacts]>,
  ): number[] {
    const known = new Map(facts)
    return messages.map(({ format, data }) => storedTokens(format, data, (sha256) => known.get(sha256)))
  }

  endConversation(conversation: number): void {
    this.renderers.delete(conversation)
  }

  /** The next messages of a list that is made fit to be sent. */
  addToList(list: number, format: MessageFormat, options: FitOptions, messages: FitMessage[]): void {
    let fit = this.lists.get(list)
    if (!fit) {
      fit = new FitToSend(format, options)
      this.lists.set(list, fit)
    }
    for (const message of messages) fit.add(message)
  }

  finishList(list: number): FittedList {
    return inStep(this.lists.get(list)!)
  }

  endList(list: number): void {
    this.lists.delete(list)
  }

  contextMessages(messages: StoredSeq[]): ContextMessage[] {
    return messages.map(contextMessage)
  }

  /** A message that is stored in parts, and its tokens. */
  joinedMessage(format: MessageFormat, parts: string[]): { blob: string; tokens: number } | undefined {
    const blob = joinedMessage(format, parts)
    return blob === undefined ? undefined : { blob, tokens: storedTokens(format, blob, () => undefined) }
  }

  indexedWords(entries: SearchedEntry[]): string[] {
    return entries.map((entry) => indexedWords(entryText(entry)))
  }

  searchMatches(entries: SearchedEntry[], terms: SearchTerm[]): Array<Match | null> {
    return entries.map((entry) => matchTerms(entryText(entry), terms) ?? null)
  }

  findErrors(rows: Row[], known_seq: number): RuleFindings {
    return findErrors(logEntries(rows), known_seq)
  }

  logFigures(json: string): { figures: LogFigures; entries: number } {
    const entries = JSON.parse(json) as Array<LogEntry & { data: unknown }>
    const log = entries.map((entry) => (entry.kind === 'message' ? { ...entry, blob: entry.data } : entry))
    return { figures: figuresOfLog(log), entries: entries.length }
  }
}

function factsIn(attachments: readonly TakenBytes[]): FactsOf {
  const known = new Map(attachments.map(({ sha256, bytes }) => [sha256, mediaFacts(bytes)]))
  return (sha256) => known.get(sha256)
}

export type WorkName = keyof ThreadWork
export type WorkArguments<Name extends WorkName> = Parameters<ThreadWork[Name]>
export type WorkResult<Name extends WorkName> = Awaited<ReturnType<ThreadWork[Name]>>
