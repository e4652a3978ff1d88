import { isJsonObject } from '@annals/messages/json'
import { resultOf } from './chat_messages.js'
import { digestOf } from './ids.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from './json.js'
import type { Output } from './output.js'
import type { JsonObject } from './records.js'
import { timeOf } from './times.js'
import { messagesIn, paired } from './traced_messages.js'

/** A span of any tracer. */
export interface Span {
  id: string
  trace_id: string
  parent_id?: string | undefined
  /** The session, where the trace belongs to one. */
  session?: string | undefined
  user?: unknown
  name: string
  kind: 'model' | 'tool' | 'other'
  start?: unknown
  end?: unknown
  model?: unknown
  usage?: unknown
  error?: unknown
  input?: unknown
  output?: unknown
  /** Of a tool: the call of the model that it answers. */
  call_id?: string | undefined
  configs?: JsonObject
  /** The span as it was. */
  raw: JsonObject
}

/** Contexts of sessions that are remembered: a hundred bytes for each message. */
const CONTEXTS_MAX = 2_000

/**
 * Stores spans. A model's span repeats the conversation so far, so only what its session does not have yet becomes
 * messages; where nothing fits, an event says so. The span of a tool is its call and its result.
 */
export class Traces {
  private readonly contexts = new Map<string, string[]>()
  /** Calls and results of the sessions whose contexts are remembered, by the ids of the calls. */
  private readonly called = new Map<string, Set<string>>()
  /** The root of a trace of which no model's span came yet: if none comes, it says the conversation. */
  private held: Span | undefined
  /** The last trace that had a model's span. */
  private modelled: string | undefined

  /** `roots`: whether they tell what the whole was asked and answered. Whoever says so calls `end`, too. */
  constructor(
    private readonly out: Output,
    private readonly roots: 'told' | 'untold' = 'untold',
  ) {}

  store(span: Span): void {
    const key = span.session ?? span.trace_id
    if (!this.out.isOpen(key) || span.parent_id === undefined || span.model != null)
      this.out.session(key, {
        user: span.user,
        configs: { model: span.model, ...span.configs },
        changed_at: span.end ?? span.start,
      })
    const { held } = this
    if (held && (held.trace_id !== span.trace_id || span.kind === 'model')) {
      this.held = undefined
      this.tell(held, held.trace_id !== span.trace_id)
    }
    const is_root = this.roots === 'told' && span.kind === 'other' && span.parent_id === undefined
    if (span.kind === 'model') this.modelled = span.trace_id
    if (is_root && !this.held && this.modelled !== span.trace_id) this.held = span
    else this.tell(span, span.kind === 'model')
  }

  /** All spans were there. */
  end(): void {
    const { held } = this
    this.held = undefined
    if (held) this.tell(held, true)
  }

  /** Stores what a span is, after the messages of its conversation. */
  private tell(span: Span, speaks: boolean): void {
    const key = span.session ?? span.trace_id
    if (speaks) {
      const asked = messagesIn(span.input)
      const answered = messagesIn(span.output, 'assistant')
      const said = paired([...asked, ...newIn(answered, asked)])
      this.converse(key, span, said.slice(0, asked.length), said.slice(asked.length))
    }
    const started = timeOf(span.start)
    const ended = timeOf(span.end)
    const told = without({
      name: span.name,
      trace_id: span.trace_id,
      span_id: span.id.slice(span.id.lastIndexOf('/') + 1),
      parent_span_id: span.parent_id,
      started_at: started,
      ended_at: ended,
      duration_ms: started && ended ? Date.parse(ended) - Date.parse(started) : undefined,
      model: span.model,
      usage: usageOf(span.usage),
    })
    const is_failed = hasFailed(span.error)
    const { call_id: id, name, input, output } = span
    const tool = {
      operation: 'tool',
      tool: without({ name, id, arguments: input ?? {}, result: output, is_error: is_failed || undefined }),
    }
    const data = {
      ...(span.kind === 'tool' ? tool : span.kind === 'model' && { operation: 'model' }),
      ...told,
      ...(is_failed && { error: span.error }),
      raw: span.raw,
    }
    this.out.event(key, 'otel.span', data, { native: `span ${span.id}`, at: span.end ?? span.start })
  }

  private converse(key: string, span: Span, asked: JsonObject[], answered: JsonObject[]): void {
    const known = this.contexts.get(key) ?? []
    const names = asked.map(nameOf)
    let same = 0
    while (same < names.length && same < known.length && names[same] === known[same]) same += 1
    if (same === 0 && known.length > 0 && names.length > 0)
      this.out.event(
        key,
        'annals.context_changed',
        { span_id: span.id },
        { native: `context ${span.id}`, at: span.start },
      )
    const called = this.called.get(key) ?? new Set()
    this.called.set(key, called)
    // A context that is arranged in another way, or begins later, still repeats the same calls.
    for (let at = same; at < asked.length; at++)
      if (!isKnown(asked[at]!, called)) this.say(key, span, `in ${at}`, asked[at]!, span.start)
    for (const [at, message] of answered.entries())
      this.say(key, span, `out ${at}`, message, span.end ?? span.start)
    for (const name of [...asked, ...answered].flatMap(callsIn)) called.add(name)
    if (this.contexts.size >= CONTEXTS_MAX) {
      const oldest = this.contexts.keys().next().value!
      this.contexts.delete(oldest)
      this.called.delete(oldest)
    }
    const context = names.length > 0 ? names : known
    this.contexts.set(key, [...context, ...answered.map(nameOf)])
  }

  private say(key: string, span: Span, place: string, message: JsonObject, at: unknown): void {
    const { is_error, ...said } = message
    const { format, blob } =
      is_error === true
        ? resultOf(String(said.tool_call_id), String(said.content), true)
        : { format: 'openai' as const, blob: said }
    this.out.message(key, format, blob, { native: `${span.id} ${place}`, at })
  }
}

/** What counts are called, by tracer. After a dot: a member. */
const USAGE: Record<string, readonly string[]> = {
  input_tokens: ['input_tokens', 'prompt_tokens', 'inputTokens', 'promptTokens', 'input', 'prompt'],
  output_tokens: [
    'output_tokens',
    'completion_tokens',
    'outputTokens',
    'completionTokens',
    'output',
    'completion',
  ],
  total_tokens: ['total_tokens', 'totalTokens', 'total'],
  cached_tokens: [
    'cached_tokens',
    'input_cached_tokens',
    'cache_read_input_tokens',
    'input_cache_read',
    'input_token_details.cache_read',
    'prompt_details.cache_read',
    'prompt_tokens_details.cached_tokens',
  ],
  cache_write_tokens: [
    'cache_write_tokens',
    'cache_creation_input_tokens',
    'input_cache_creation',
    'input_token_details.cache_creation',
    'prompt_details.cache_write',
  ],
  reasoning_tokens: [
    'reasoning_tokens',
    'output_reasoning_tokens',
    'output_token_details.reasoning',
    'completion_details.reasoning',
    'completion_tokens_details.reasoning_tokens',
  ],
}

/** How many tokens a call used, under the names that spans sent to the service have. */
function usageOf(usage: unknown): JsonObject | undefined {
  if (!isJsonObject(usage)) return undefined
  const valueAt = (name: string) => name.split('.').reduce<unknown>((at, step) => objectIn(at)[step], usage)
  const counts = Object.entries(USAGE).map(([name, names]) => {
    const found = names.map(valueAt).find((value) => typeof value === 'number' && value >= 0)
    return [name, found]
  })
  const known = without(Object.fromEntries(counts))
  return isEmpty(known) ? undefined : known
}

function hasFailed(error: unknown): boolean {
  return isJsonObject(error) ? !isEmpty(error) : error != null && error !== '' && error !== false
}

/** What makes two messages the same: who says what, and calls what. */
function nameOf({ role, content, tool_calls, tool_call_id }: JsonObject): string {
  const calls = objectsIn(tool_calls).map(({ function: called }) => [
    objectIn(called).name,
    argumentsIn(called),
  ])
  return digestOf([role, content ?? '', calls, tool_call_id ?? null])
}

/** What an answer adds, where it repeats what was asked: the state of a graph has both. */
function newIn(answered: JsonObject[], asked: JsonObject[]): JsonObject[] {
  const repeats =
    asked.length > 0 && asked.every((one, at) => answered[at] && nameOf(one) === nameOf(answered[at]))
  return repeats ? answered.slice(asked.length) : answered
}

/** The calls that a message makes or answers, by ids that a provider gave them. */
function callsIn({ tool_calls, tool_call_id }: JsonObject): string[] {
  const ids = [...objectsIn(tool_calls).map(({ id }) => `call ${id}`), `result ${tool_call_id}`]
  return ids.filter((id) => !/ (?:call_\d+|unknown|undefined)?$/.test(id))
}

/** Whether all that the message does is repeat calls or results that the session has. */
function isKnown(message: JsonObject, called: Set<string>): boolean {
  const ids = callsIn(message)
  const all = objectsIn(message.tool_calls).length + (message.role === 'tool' ? 1 : 0)
  return ids.length > 0 && ids.length === all && ids.every((id) => called.has(id))
}

function argumentsIn(called: unknown): unknown {
  const text = objectIn(called).arguments
  try {
    return typeof text === 'string' ? JSON.parse(text) : text
  } catch {
    return text
  }
}

/** Numbered and dotted names as objects and lists: `{ "a.0.b": 1 }` is `{ "a": [{ "b": 1 }] }`. */
export function nested(flat: JsonObject): JsonObject {
  const root: JsonObject = {}
  for (const [name, value] of Object.entries(flat)) {
    const path = name.split('.')
    let at = root
    for (const step of path.slice(0, -1)) {
      if (!isJsonObject(at[step])) at[step] = Object.create(null) as JsonObject
      at = at[step] as JsonObject
    }
    const last = path.at(-1)!
    if (!isJsonObject(at[last])) at[last] = isJsonObject(value) ? nested(value) : value
  }
  return listed(root) as JsonObject
}

function listed(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([name, one]) => [name, listed(one)] as const)
  const is_list = entries.length > 0 && entries.every(([name]) => /^\d{1,6}$/.test(name))
  return is_list
    ? entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, one]) => one)
    : Object.fromEntries(entries)
}

/** The value of a text that is JSON, or the text. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** The first text of several. */
export function firstText(...values: unknown[]): string | undefined {
  return values
    .map((value) => (typeof value === 'number' ? String(value) : textIn(value)))
    .find((one) => one !== undefined)
}

/**
 * Objects in the order in which they ended, so that what was called stands before what called it, and the conversation
 * in its order: a session begins with what began first, and ends with what ended last.
 */
export function byEnd(spans: unknown, start: string, end: string): JsonObject[] {
  const timesOf = (span: JsonObject) => [timeOf(span[end] ?? span[start]) ?? '', timeOf(span[start]) ?? '']
  return listIn(spans)
    .filter(isJsonObject)
    .map((span) => ({ span, times: timesOf(span) }))
    .sort(({ times: [a, begun = ''] }, { times: [b, other = ''] }) =>
      a === b ? other.localeCompare(begun) : a! < b! ? -1 : 1,
    )
    .map(({ span }) => span)
}
