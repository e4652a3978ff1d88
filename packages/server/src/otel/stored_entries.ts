import { isRefusal, readStorable, writeJson } from '@annals/messages/json'
import {
  type Attributes,
  type Conversation,
  type LogRecord,
  type Meaning,
  meaningOf,
  membersOf,
  openAiMessage,
  type Said,
  type Span,
  textIn,
} from '@annals/otel'
import type { AppendedEntry } from '../log/append/append_request.js'
import { messageEntry } from '../log/append_bodies.js'

export const SPAN_TYPE = 'otel.span'
export const LOG_TYPE = 'otel.log'
export const MESSAGE_TYPE = 'otel.message'
/** Says that what follows does not continue what was said before. */
export const CHANGED_TYPE = 'annals.context_changed'

const SPAN_KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']
const STATUS_CODES = ['unset', 'ok', 'error']
const NANOS = 1_000_000n
/** What an entry has beside its data. */
const ENVELOPE_BYTES = 100

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
  const micros = String((nanos / 1_000n) % 1_000_000n).padStart(6, '0')
  return `${time.toISOString().slice(0, 19)}.${micros}Z`
}

/** What is stored of a span. */
export function spanData(span: Span, meaning: Meaning, beside: Beside | undefined): Attributes {
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
    started_at: timeOf(start) ?? undefined,
    ended_at: timeOf(end) ?? undefined,
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

/** What is stored of a record of a log. */
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

/** The name of what a record tells. */
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

function withoutNothing(members: Attributes): Attributes {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** An event to be stored, or why it cannot be. */
export function eventEntry(
  id: string,
  type: string,
  data: Attributes,
  occurred_at: string | null,
  bytes_max: number,
): AppendedEntry | string {
  const text = ownText(writeJson(data))
  const json = readStorable(text)
  if (isRefusal(json)) return 'it cannot be stored as JSON'
  const bytes = Buffer.byteLength(text) + json.expansion + ENVELOPE_BYTES
  if (bytes > bytes_max) return `it has ${bytes} bytes; at most ${bytes_max} can be stored of one`
  return {
    id,
    // So that two requests that send the same at once are not stored by one flush.
    id_given: true,
    kind: 'event',
    type,
    format: null,
    role: null,
    key: null,
    bytes,
    tokens: 0,
    occurred_at,
    data: text,
    meta: null,
    references: undefined,
  }
}

/** A message to be stored. One that is too long, or is none, is stored as an event, or as a note of its length. */
export function saidEntry(
  id: string,
  said: Said,
  occurred_at: string | null,
  bytes_max: number,
): AppendedEntry {
  const text = ownText(writeJson(openAiMessage(said)))
  const json = readStorable(text)
  const bytes = Buffer.byteLength(text) + (isRefusal(json) ? 0 : json.expansion) + ENVELOPE_BYTES
  if (bytes > bytes_max || isRefusal(json)) {
    const note = `[left out: ${Buffer.byteLength(textIn(said.text))} bytes of text, ${bytes} in all]`
    return saidEntry(id, { ...said, text: note, other: [], reasoning: '', calls: [] }, occurred_at, bytes_max)
  }
  try {
    const { role, tokens } = messageEntry('openai', text, json.value, id, '/message')
    return {
      id,
      id_given: true,
      kind: 'message',
      type: null,
      format: 'openai',
      role,
      key: null,
      bytes,
      tokens,
      occurred_at,
      data: text,
      meta: '{}',
      references: undefined,
    }
  } catch {
    return eventEntry(id, MESSAGE_TYPE, { ...said }, occurred_at, bytes_max) as AppendedEntry
  }
}

/** A reference to a blob is ours to make: what a program reports never is one. */
function ownText(text: string): string {
  return text.includes('"annals_blob"') ? text.replaceAll('"annals_blob"', '"annals.blob"') : text
}
