/**
 * The messages of OTLP, as far as they are read: one table for both encodings. A field has its number in protobuf, and
 * its type; in JSON it has the same name in camel case. `each`: of a list whose items may be refused one by one.
 */
export type FieldType = 'text' | 'hex' | 'number' | 'uint' | 'fixed32' | 'fixed64' | 'value' | 'attributes'

export interface Field {
  readonly number: number
  readonly type: FieldType | Message
  readonly many?: 'all' | 'each'
}

export type Message = Readonly<Record<string, Field>>

const field = (number: number, type: Field['type'], many?: Field['many']): Field =>
  many ? { number, type, many } : { number, type }

const RESOURCE: Message = { attributes: field(1, 'attributes') }
const SCOPE: Message = { name: field(1, 'text'), version: field(2, 'text') }

const SPAN: Message = {
  trace_id: field(1, 'hex'),
  span_id: field(2, 'hex'),
  trace_state: field(3, 'text'),
  parent_span_id: field(4, 'hex'),
  name: field(5, 'text'),
  kind: field(6, 'uint'),
  start_time_unix_nano: field(7, 'fixed64'),
  end_time_unix_nano: field(8, 'fixed64'),
  attributes: field(9, 'attributes'),
  dropped_attributes_count: field(10, 'uint'),
  events: field(
    11,
    { time_unix_nano: field(1, 'fixed64'), name: field(2, 'text'), attributes: field(3, 'attributes') },
    'all',
  ),
  dropped_events_count: field(12, 'uint'),
  links: field(
    13,
    { trace_id: field(1, 'hex'), span_id: field(2, 'hex'), attributes: field(4, 'attributes') },
    'all',
  ),
  dropped_links_count: field(14, 'uint'),
  status: field(15, { message: field(2, 'text'), code: field(3, 'uint') }),
}

const LOG_RECORD: Message = {
  time_unix_nano: field(1, 'fixed64'),
  severity_number: field(2, 'uint'),
  severity_text: field(3, 'text'),
  body: field(5, 'value'),
  attributes: field(6, 'attributes'),
  trace_id: field(9, 'hex'),
  span_id: field(10, 'hex'),
  observed_time_unix_nano: field(11, 'fixed64'),
  event_name: field(12, 'text'),
}

export const TRACES: Message = {
  resource_spans: field(
    1,
    {
      resource: field(1, RESOURCE),
      scope_spans: field(2, { scope: field(1, SCOPE), spans: field(2, SPAN, 'each') }, 'all'),
    },
    'all',
  ),
}

export const LOGS: Message = {
  resource_logs: field(
    1,
    {
      resource: field(1, RESOURCE),
      scope_logs: field(2, { scope: field(1, SCOPE), log_records: field(2, LOG_RECORD, 'each') }, 'all'),
    },
    'all',
  ),
}

/** What a field has that was not sent. */
export function absent({ type, many }: Field): unknown {
  if (many) return []
  if (typeof type === 'object') return empty(type)
  if (type === 'attributes') return {}
  if (type === 'value') return null
  if (type === 'fixed64') return 0n
  return type === 'text' || type === 'hex' ? '' : 0
}

/** A message of which nothing was sent. */
export function empty(message: Message): Record<string, unknown> {
  return Object.fromEntries(Object.entries(message).map(([name, field]) => [name, absent(field)]))
}
