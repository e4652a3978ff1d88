import type { TimelineItem } from '@annals/client'
import { InvalidMessage, type MessageFormat, type NeutralMessage, readMessage } from '@annals/messages'
import { isJsonObject, parseJson, writeJson } from '@annals/messages/json'
import { entriesOfStep } from '../formats/atif.js'
import { isEmpty, objectIn, textIn } from '../json.js'
import type { JsonObject } from '../records.js'
import { timeOf } from '../times.js'
import { type AboutSession, type Omissions, omit, type SessionDocument } from './session_document.js'

const VERSION = 'ATIF-v1.6'
const NOTE = 'Of these, extra.annals has what ATIF has no form for: '

/** An entry as an import takes it. */
type Exact = JsonObject

interface Step {
  source: 'system' | 'user' | 'agent'
  message: string
  timestamp?: string | undefined
  reasoning_content?: string
  tool_calls?: JsonObject[]
  results: JsonObject[]
  /** All entries that the step is made of, with the events after it. */
  entries: Exact[]
  /** Calls that wait for their results. */
  open: Set<string>
}

/** Characters of entries that wait for the end of their step: any number of events may follow one message. */
const WAITING_LENGTH_MAX = 256 * 1024

/**
 * A session as a trajectory, on one line. A step is made of a message, the results of its calls, and the events after it.
 * Where the step alone would not be read as these entries again, `extra.annals.entries` has them. Where very much follows
 * one message, steps without a message have the rest.
 */
export class AtifDocument implements SessionDocument {
  private step: Step | undefined
  private count = 0
  private has_head = false
  /** Events before the first step. */
  private early: Exact[] = []
  private waiting_length = 0

  constructor(
    private readonly about: AboutSession,
    private readonly omitted: Omissions,
  ) {}

  add(entry: TimelineItem): string {
    const exact = exactOf(entry)
    if (entry.kind === 'event') {
      omit(this.omitted, `event ${entry.type}`)
      return this.addEvent(exact)
    }
    const read = neutralOf(entry)
    if (this.step && read && answers(read, this.step)) {
      const written = this.writeIfLong(exact)
      if (this.step) {
        addResults(this.step, read, exact)
        return written
      }
      this.step = stepOf(read, entry, exact)
      return written
    }
    if (read === undefined) omit(this.omitted, 'unreadable message')
    const written = this.write()
    this.step = stepOf(read, entry, exact)
    return written
  }

  end(): string {
    const { omitted } = this
    const has_all = omitted.size === 0
    const notes = has_all
      ? {}
      : { notes: NOTE + [...omitted].map(([what, n]) => `${what} (${n})`).join(', ') }
    const written = this.write()
    const extra = has_all ? {} : { extra: { omitted: Object.fromEntries(omitted) } }
    const last = { ...notes, final_metrics: { total_steps: this.count, ...extra } }
    return `${written}],${writeJson(last).slice(1)}\n`
  }

  private addEvent(exact: Exact): string {
    const written = this.writeIfLong(exact)
    if (this.step) this.step.entries.push(exact)
    else if (this.has_head)
      this.step = { source: 'system', message: '', results: [], entries: [exact], open: new Set() }
    else this.early.push(exact)
    return written
  }

  private writeIfLong(next: Exact): string {
    const { length } = writeJson(next)
    const written = this.waiting_length + length > WAITING_LENGTH_MAX ? this.write() : ''
    this.waiting_length += length
    return written
  }

  private write(): string {
    const { step, early } = this
    const head = this.has_head ? '' : this.head(early)
    this.has_head = true
    this.early = []
    this.waiting_length = 0
    this.step = undefined
    if (!step) return head
    this.count += 1
    return `${head}${this.count === 1 ? '' : ','}${writeJson(stepJson(step, this.count))}`
  }

  private head(early: Exact[]): string {
    const { session, user } = this.about
    const { configs } = session
    const name = textIn(configs.agent) ?? 'annals'
    const model_name = textIn(configs.model)
    const agent = { name, version: textIn(configs.version) ?? 'unknown', ...(model_name && { model_name }) }
    const annals = {
      configs,
      ...(user !== undefined && { user }),
      ...(early.length > 0 && { entries: early }),
    }
    const about = { schema_version: VERSION, session_id: session.id, agent, extra: { annals } }
    return `${writeJson(about).slice(0, -1)},"steps":[`
  }
}

function stepJson({ open: _, entries, results, ...step }: Step, step_id: number): JsonObject {
  const observation = results.length > 0 ? { observation: { results } } : {}
  const json: JsonObject = { step_id, ...step, ...observation }
  if (json.timestamp === undefined) delete json.timestamp
  return isReadAs(json, entries) ? json : { ...json, extra: { annals: { entries } } }
}

/** Whether an import of the step would give these entries. */
function isReadAs(step: JsonObject, entries: readonly Exact[]): boolean {
  const read = entriesOfStep(step).map(({ suffix: _, at, ...entry }) => {
    const occurred_at = timeOf(at)
    const format = entry.kind === 'message' ? { format: 'openai' } : {}
    return sorted({ ...entry, ...format, ...(occurred_at && { occurred_at }) })
  })
  return writeJson(read) === writeJson(entries.map(sorted))
}

/** With members in one order, however deep. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).filter(([, one]) => one !== undefined)
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, sorted(one)]),
  )
}

function exactOf(entry: TimelineItem): Exact {
  const { occurred_at, key } = entry
  const beside = { ...(occurred_at != null && { occurred_at }), ...(key != null && { key }) }
  if (entry.kind === 'event') return { kind: 'event', type: entry.type, data: entry.data, ...beside }
  const meta = objectIn(entry.meta)
  return {
    kind: 'message',
    format: entry.format,
    blob: entry.blob,
    ...(!isEmpty(meta) && { meta }),
    ...beside,
  }
}

function neutralOf({
  format,
  blob,
  id,
}: Extract<TimelineItem, { kind: 'message' }>): NeutralMessage | undefined {
  try {
    return readMessage(format as MessageFormat, blob, { id, parent_id: null })
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return undefined
  }
}

/** Whether a message is nothing but results of a step's calls. */
function answers({ parts }: NeutralMessage, { open }: Step): boolean {
  return (
    parts.length > 0 &&
    parts.every(({ type, meta }) => type === 'tool-result' && open.has(String(objectIn(meta).tool_call_id)))
  )
}

function addResults(step: Step, { parts }: NeutralMessage, exact: Exact): void {
  for (const { text, meta } of parts) {
    const { tool_call_id, is_error: has_failed } = objectIn(meta)
    const source_call_id = String(tool_call_id)
    step.open.delete(source_call_id)
    const is_error = has_failed === true ? { extra: { is_error: true } } : {}
    step.results.push({ source_call_id, content: text ?? '', ...is_error })
  }
  step.entries.push(exact)
}

function stepOf(
  read: NeutralMessage | undefined,
  entry: Extract<TimelineItem, { kind: 'message' }>,
  exact: Exact,
): Step {
  const { parts = [], role = 'user', provider_role = null } = read ?? {}
  const is_system = provider_role === 'system' || provider_role === 'developer'
  const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => text ?? '')
  const thoughts = parts.filter(({ type }) => type === 'thinking').map(({ text }) => text ?? '')
  const calls = parts.filter(({ type }) => type === 'tool-call').map(({ meta }) => callOf(objectIn(meta)))
  const results = parts
    .filter(({ type }) => type === 'tool-result')
    .map(({ text }) => ({ content: text ?? '' }))
  return {
    source: is_system ? 'system' : role === 'assistant' ? 'agent' : 'user',
    message: texts.join('\n'),
    timestamp: textIn(entry.occurred_at ?? undefined),
    ...(thoughts.length > 0 && role === 'assistant' && { reasoning_content: thoughts.join('\n') }),
    ...(calls.length > 0 && { tool_calls: calls }),
    results,
    entries: [exact],
    open: new Set(calls.map(({ tool_call_id }) => String(tool_call_id))),
  }
}

function callOf({ id, name, arguments: given }: JsonObject): JsonObject {
  return { tool_call_id: String(id), function_name: String(name), arguments: argumentsOf(given) }
}

function argumentsOf(given: unknown): JsonObject {
  try {
    const value = typeof given === 'string' ? parseJson(given) : given
    return isJsonObject(value) ? value : { unparsed_arguments: given }
  } catch {
    return { unparsed_arguments: given }
  }
}
