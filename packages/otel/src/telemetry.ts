/** Any value of an attribute: as in JSON, with whole numbers exact and bytes as base64. */
export type Attributes = Record<string, unknown>

/** What a program said of itself, and of the part of it that reports. */
export interface Origin {
  resource: Attributes
  scope: { name?: string; version?: string }
}

/** A point of a span. Times are nanoseconds since 1970; 0: unknown. */
export interface SpanEvent {
  time_unix_nano: bigint
  name: string
  attributes: Attributes
}

export interface SpanLink {
  trace_id: string
  span_id: string
  attributes: Attributes
}

/** A span. Ids are in lower-case hexadecimal digits; empty: none. */
export interface Span extends Origin {
  trace_id: string
  span_id: string
  parent_span_id: string
  trace_state: string
  name: string
  kind: number
  start_time_unix_nano: bigint
  end_time_unix_nano: bigint
  attributes: Attributes
  events: SpanEvent[]
  links: SpanLink[]
  status: { code: number; message: string }
  /** How many attributes, events and links the program itself left out. */
  dropped: number
}

export interface LogRecord extends Origin {
  trace_id: string
  span_id: string
  time_unix_nano: bigint
  observed_time_unix_nano: bigint
  severity_number: number
  severity_text: string
  event_name: string
  body: unknown
  attributes: Attributes
}

/** What was sent, and how many spans or records of it cannot be taken, with the reason for the first of these. */
export interface Telemetry<Item> {
  items: Item[]
  refused: number
  reason: string
}

export type Encoding = 'protobuf' | 'json'

/** What was sent is no OTLP, or too much at once. */
export class Unreadable extends Error {
  constructor(
    message: string,
    readonly is_too_large = false,
  ) {
    super(message)
  }
}
