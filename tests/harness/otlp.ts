import type { ApiClient } from './api_client.ts'
import type { Answer } from './http_client.ts'

/** A span as a test describes it. Times are in ms after BEGAN_AT; attributes are texts, numbers, bigints or lists. */
export interface TestSpan {
  trace?: string
  id: string
  parent?: string
  name?: string
  from?: number
  to?: number
  attributes?: Record<string, unknown>
  events?: Array<{ name: string; attributes: Record<string, unknown> }>
  status?: { code: number; message?: string }
}

export const BEGAN_AT = Date.UTC(2026, 0, 2, 3, 4, 5)
export const TRACE = '0af7651916cd43dd8448eb211c80319c'

type Value = Record<string, unknown>

export function otlpValue(value: unknown): Value {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'bigint' || Number.isInteger(value)) return { intValue: String(value) }
  if (typeof value === 'number') return { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } }
  return { kvlistValue: { values: otlpAttributes(value as Value) } }
}

export function otlpAttributes(members: Record<string, unknown>) {
  return Object.entries(members).map(([key, value]) => ({ key, value: otlpValue(value) }))
}

const nanos = (ms: number) => `${BEGAN_AT + ms}000000`

export function tracesBody(
  spans: TestSpan[],
  resource: Record<string, unknown> = { 'service.name': 'shop' },
) {
  const sent = spans.map(
    ({
      trace = TRACE,
      id,
      parent,
      name = 'span',
      from = 0,
      to = from + 10,
      attributes = {},
      events = [],
      status,
    }) => ({
      traceId: trace,
      spanId: id.padStart(16, '0'),
      ...(parent && { parentSpanId: parent.padStart(16, '0') }),
      name,
      kind: 1,
      startTimeUnixNano: nanos(from),
      endTimeUnixNano: nanos(to),
      attributes: otlpAttributes(attributes),
      events: events.map((event) => ({
        timeUnixNano: nanos(from),
        name: event.name,
        attributes: otlpAttributes(event.attributes),
      })),
      ...(status && { status }),
    }),
  )
  return {
    resourceSpans: [
      {
        resource: { attributes: otlpAttributes(resource) },
        scopeSpans: [{ scope: { name: 'test' }, spans: sent }],
      },
    ],
  }
}

interface Sent {
  partialSuccess?: { rejectedSpans?: string; rejectedLogRecords?: string; errorMessage?: string }
}

/** The answer has no envelope. */
export async function sendTraces(api: ApiClient, spans: TestSpan[], resource?: Record<string, unknown>) {
  const answer = await api.request('POST', '/api/v1/otel/v1/traces', { body: tracesBody(spans, resource) })
  return answer as unknown as Answer<never> & { json: Sent }
}
