import { type Conversation, type Meaning, meaningOf, membersOf } from './meaning.js'
import type { Attributes, LogRecord, Span } from './telemetry.js'

export const SPAN_TYPE = 'otel.span'
export const LOG_TYPE = 'otel.log'

const SPAN_KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']
const STATUS_CODES = ['unset', 'ok', 'error']
const NANOS = 1_000_000n

/** The messages that stand beside a span, and the attributes that are left out of it for that. */
export interface Beside {
  conversation: Conversation
  /** The id of the last message that it knows of. */
  last_id: string
}

/** Nanoseconds since 1970 as RFC 3339 in UTC with microseconds; null: unknown. */
export function timeOf(nanos: bigint): string | null {
  if (nanos <= 0n) return null
  const time = new Date(Number(nanos / NANOS))
  if (!(time.getUTCFullYear() <= 9_999)) return null
  const micros = String(Math.floor(Number(nanos % NANOS) / 1_000)).padStart(3, '0')
  return `${time.toISOString().slice(0, 23)}${micros}Z`
}

/** When a span began and ended, as `timeOf` writes it. */
export interface SpanTimes {
  started_at: string | null
  ended_at: string | null
}

export function spanData(
  span: Span,
  meaning: Meaning,
  { started_at, ended_at }: SpanTimes,
  beside: Beside | undefined,
): Attributes {
  const { name, kind, trace_id, span_id, parent_span_id, status, links, resource, scope, dropped } = span
  const { start_time_unix_nano: start, end_time_unix_nano: end } = span
  const used = new Set(beside?.conversation.used)
  const error = errorOf(span)
  return withoutNothing({
    name,
    ...meaningData(meaning, status.code === 2 || error !== undefined, error),
    kind: SPAN_KINDS[kind] ?? String(kind),
    trace_id,
    span_id,
    parent_span_id: parent_span_id || undefined,
    started_at: started_at ?? undefined,
    ended_at: ended_at ?? undefined,
    duration_ms: start > 0n && end >= start ? Number(end - start) / 1e6 : undefined,
    status: withoutNothing({
      code: STATUS_CODES[status.code] ?? String(status.code),
      message: status.message || undefined,
    }),
    messages: beside && besideData(beside),
    attributes: without(span.attributes, used),
    events: used.has('events') ? undefined : some(span.events.map(eventData)),
    links: some(links),
    trace_state: span.trace_state || undefined,
    dropped: dropped || undefined,
    resource,
    scope,
  })
}

export function logData(record: LogRecord, beside: Beside | undefined): Attributes {
  const { trace_id, span_id, severity_number, severity_text, body, attributes, resource, scope } = record
  const all = { ...membersOf(body), ...attributes, 'event.name': nameOf(record) }
  const is_failed =
    attributes.success === 'false' || attributes.success === false || /error$/.test(nameOf(record))
  return withoutNothing({
    name: nameOf(record) || undefined,
    ...meaningData(meaningOf('', all), is_failed, attributes.error),
    trace_id: trace_id || undefined,
    span_id: span_id || undefined,
    severity: severity_text || severity_number || undefined,
    duration_ms: numberIn(attributes.duration_ms),
    messages: beside && besideData(beside),
    body: beside ? undefined : (body ?? undefined),
    attributes: without(attributes, new Set(beside?.conversation.used)),
    resource,
    scope,
  })
}

/** Claude Code has numbers as texts. */
function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && number >= 0 && Number.isFinite(number) ? number : undefined
}

export function nameOf({ event_name, attributes }: Pick<LogRecord, 'event_name' | 'attributes'>): string {
  return event_name || (typeof attributes['event.name'] === 'string' ? attributes['event.name'] : '')
}

function meaningData(meaning: Meaning, is_failed: boolean, error: unknown): Attributes {
  const { operation, agent, model, provider, usage, tool } = meaning
  return {
    operation,
    agent,
    model,
    provider,
    usage: Object.keys(usage).length > 0 ? usage : undefined,
    tool: tool && withoutNothing({ ...tool, is_error: is_failed || undefined }),
    error: error ?? undefined,
  }
}

/** What went wrong, as the status or an exception says. */
function errorOf({ status, events, attributes }: Span): string | undefined {
  const exception = events.find(({ name }) => name === 'exception')?.attributes
  if (status.code !== 2 && !exception) return undefined
  const said = [status.message, exception?.['exception.message'], attributes['error.type']]
  const text = said.find((one) => typeof one === 'string' && one !== '') as string | undefined
  // LangSmith has the stack in the message; it stands in the exception as well.
  const stack = text?.indexOf('Traceback (most recent call last):') ?? -1
  return stack > 0 ? text!.slice(0, stack) : text
}

function besideData({ conversation, last_id }: Beside): Attributes {
  const { input, output, used } = conversation
  return { input: input.length, output: output.length, last_id, left_out: used }
}

function eventData({ time_unix_nano, name, attributes }: Span['events'][number]): Attributes {
  return withoutNothing({ name, at: timeOf(time_unix_nano) ?? undefined, attributes })
}

function some<One>(list: One[]): One[] | undefined {
  return list.length > 0 ? list : undefined
}

function without(attributes: Attributes, names: ReadonlySet<string>): Attributes {
  return names.size === 0
    ? attributes
    : Object.fromEntries(Object.entries(attributes).filter(([name]) => !names.has(name)))
}

/** Leaves out what is undefined, of an object that nobody else has. */
function withoutNothing(members: Attributes): Attributes {
  for (const name of Object.keys(members)) if (members[name] === undefined) delete members[name]
  return members
}
