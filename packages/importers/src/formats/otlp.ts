import { isJsonObject, writeJson } from '@annals/messages/json'
import {
  conversationOf,
  meaningOf,
  type Span as OtlpSpan,
  openAiMessage,
  originOf,
  readSpans,
  type Said,
  sessionNamed,
  Unreadable,
  userNamed,
} from '@annals/otel'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { type Span, Traces } from '../traces.js'

/** What the collector's file exporter writes: a request a line. The conventions are those of `@annals/otel`. */
export const OTLP: Format = {
  name: 'otlp',
  title: "JSON lines of the OpenTelemetry Collector's file exporter",
  knows: ({ resourceSpans, resourceLogs, resourceMetrics }) =>
    [resourceSpans, resourceLogs, resourceMetrics].some(Array.isArray),
  open: (output, file) => new OtlpParser(output, file),
}

class OtlpParser implements Parser {
  private readonly traces: Traces
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    { name }: FileFacts,
  ) {
    this.traces = new Traces(out)
    this.file_key = stemOf(name)
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    const { resourceSpans, ...others } = value
    for (const group of objectsIn(resourceSpans)) this.resource(group)
    const { resourceLogs, ...rest } = others
    for (const group of objectsIn(resourceLogs)) this.logs(group)
    if (!isEmpty(rest)) this.out.raw(this.file_key, Object.keys(rest)[0]!, rest, { noise: true })
  }

  private resource({ scopeSpans, ...about }: JsonObject): void {
    for (const { spans, ...scope } of objectsIn(scopeSpans))
      for (const span of listIn(spans)) this.span(span, { ...about, scopeSpans: scope })
  }

  private span(raw: unknown, { scopeSpans, ...about }: JsonObject): void {
    const request = { resourceSpans: [{ ...about, scopeSpans: [{ ...objectIn(scopeSpans), spans: [raw] }] }] }
    const whole = { span: raw, ...about, scope_spans: scopeSpans }
    const span = spanIn(request)
    if (span) this.traces.store(spanOf(span, whole))
    else this.out.raw(textIn(objectIn(raw).traceId) ?? this.file_key, 'span', whole)
  }

  private logs({ scopeLogs, ...about }: JsonObject): void {
    for (const { logRecords, ...scope } of objectsIn(scopeLogs))
      for (const record of listIn(logRecords)) {
        const { traceId, timeUnixNano, observedTimeUnixNano } = objectIn(record)
        const raw = { record, ...about, scope_logs: scope }
        const at = textIn(timeUnixNano) ?? observedTimeUnixNano
        this.out.raw(textIn(traceId) ?? this.file_key, 'log', raw, { at })
      }
  }
}

function spanIn(request: JsonObject): OtlpSpan | undefined {
  try {
    return readSpans(new TextEncoder().encode(writeJson(request)), 'json').items[0]
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return undefined
  }
}

function spanOf(span: OtlpSpan, raw: JsonObject): Span {
  const { attributes, resource, status } = span
  const { operation, agent, model, usage, tool } = meaningOf(span.name, attributes, span.events)
  const conversation = operation === 'model' ? conversationOf(span) : undefined
  const name = textIn(tool?.name) ?? span.name
  return {
    id: `${span.trace_id}/${span.span_id}`,
    trace_id: span.trace_id,
    parent_id: span.parent_span_id || undefined,
    session: sessionNamed({ ...resource, ...attributes })?.[1],
    user: userNamed({ ...resource, ...attributes }),
    name,
    kind: operation === 'model' ? 'model' : operation === 'tool' ? 'tool' : 'other',
    start: String(span.start_time_unix_nano),
    end: String(span.end_time_unix_nano),
    model,
    usage: isEmpty(usage) ? undefined : usage,
    error: status.code === 2 ? status.message || 'error' : undefined,
    input: conversation ? chatOf(conversation.input) : tool?.arguments,
    output: conversation ? chatOf(conversation.output) : tool?.result,
    configs: without({ agent, ...originOf(span, attributes) }),
    raw,
  }
}

function chatOf(said: readonly Said[]): unknown[] {
  return said.map((one) => openAiMessage(one))
}
