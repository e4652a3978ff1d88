import { Bounds } from './bounds.js'
import { readJsonMessage } from './read_json.js'
import { readProtobuf } from './read_protobuf.js'
import { LOGS, type Message, TRACES } from './schema.js'
import type { Attributes, Encoding, LogRecord, Origin, Span, Telemetry } from './telemetry.js'
import { Unreadable } from './telemetry.js'

interface Group<Name extends string> {
  resource: { attributes: Attributes }
  scopes: Array<{ scope: Origin['scope'] } & Record<Name, unknown[]>>
}

/** Spans that were sent. @throws Unreadable */
export function readSpans(body: Uint8Array, encoding: Encoding): Telemetry<Span> {
  const { read, bounds } = readAs(body, encoding, TRACES)
  const items: Span[] = []
  for (const { resource, scope_spans } of read.resource_spans as Array<Record<string, unknown>>)
    for (const { origin, items: spans } of withOrigins(resource, scope_spans, 'spans'))
      for (const span of spans) {
        const read = span as Span & Record<`dropped_${'attributes' | 'events' | 'links'}_count`, number>
        const dropped = read.dropped_attributes_count + read.dropped_events_count + read.dropped_links_count
        if (read.trace_id.length === 32 && read.span_id.length === 16)
          items.push(Object.assign(read, origin, { dropped }))
        else bounds.refuse('a span has no valid trace id and span id')
      }
  return { items, refused: bounds.refused, reason: bounds.reason }
}

/** Records of logs that were sent. @throws Unreadable */
export function readLogRecords(body: Uint8Array, encoding: Encoding): Telemetry<LogRecord> {
  const { read, bounds } = readAs(body, encoding, LOGS)
  const items: LogRecord[] = []
  for (const { resource, scope_logs } of read.resource_logs as Array<Record<string, unknown>>)
    for (const { origin, items: records } of withOrigins(resource, scope_logs, 'log_records'))
      for (const record of records) items.push({ ...(record as LogRecord), ...origin })
  return { items, refused: bounds.refused, reason: bounds.reason }
}

function readAs(body: Uint8Array, encoding: Encoding, message: Message) {
  const bounds = new Bounds()
  if (encoding === 'protobuf') return { read: readProtobuf(body, message, bounds), bounds }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    throw new Unreadable('The body is not JSON of OTLP: it is not valid UTF-8.')
  }
  return { read: readJsonMessage(text, message, bounds), bounds }
}

function* withOrigins<Name extends string>(resource: unknown, scopes: unknown, name: Name) {
  const { attributes } = resource as Group<Name>['resource']
  for (const group of scopes as Group<Name>['scopes']) {
    const scope = Object.fromEntries(Object.entries(group.scope).filter(([, text]) => text !== ''))
    yield { origin: { resource: attributes, scope } as Origin, items: group[name] }
  }
}
