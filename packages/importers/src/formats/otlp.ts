import { isJsonObject, writeJson } from '@annals/messages/json'
import {
  conversationOf,
  type Link,
  type LogRecord,
  meaningOf,
  type Naming,
  type Span as OtlpSpan,
  openAiMessage,
  originOf,
  readLogRecords,
  readSpans,
  recordsBySession,
  type Said,
  sessionNamed,
  Unreadable,
  userNamed,
} from '@annals/otel'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { digestOf, stableId } from '../ids.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { type Span, Traces } from '../traces.js'

/** What the collector's file exporter writes: a request a line. The conventions are those of `@annals/otel`. */
export const OTLP: Format = {
  name: 'otlp',
  title: "JSON lines of the OpenTelemetry Collector's file exporter",
  knows: (sample) => isRequest(sample) || isRequest(objectIn(sample.trace)),
  open: (output, file) => new OtlpParser(output, file),
}

export class OtlpParser implements Parser {
  private readonly traces: Traces
  private readonly file_key: string
  /** The sessions that spans of traces name. */
  private readonly sessions = new Map<string, string>()
  /** Messages that records have said. */
  private readonly said = new Set<string>()

  constructor(
    private readonly out: Output,
    { name }: FileFacts,
  ) {
    this.traces = new Traces(out)
    this.file_key = stemOf(name)
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    if (isJsonObject(value.trace) && !isRequest(value)) {
      const { trace, ...beside } = value
      this.read({ ...beside, ...(trace as JsonObject) })
      return
    }
    // Tempo calls them batches, and has ids in base64.
    const { resourceSpans, batches, ...others } = value
    for (const group of [...objectsIn(resourceSpans), ...objectsIn(batches)]) this.resource(group)
    const { resourceLogs, ...rest } = others
    for (const group of objectsIn(resourceLogs)) this.logs(group)
    if (!isEmpty(rest)) this.out.raw(this.file_key, Object.keys(rest)[0]!, rest, { noise: true })
  }

  private resource({ scopeSpans, instrumentationLibrarySpans, ...about }: JsonObject): void {
    for (const { spans, ...scope } of objectsIn(scopeSpans ?? instrumentationLibrarySpans))
      for (const span of listIn(spans)) this.span(span, { ...about, scopeSpans: scope })
  }

  /** A span of another tracer, in the form of this one, and as it was. */
  foreignSpan(span: JsonObject, about: JsonObject, raw: JsonObject): void {
    this.span(span, about, raw)
  }

  private span(given: unknown, { scopeSpans, ...about }: JsonObject, foreign?: JsonObject): void {
    const raw = withHexIds(given)
    const request = { resourceSpans: [{ ...about, scopeSpans: [{ ...objectIn(scopeSpans), spans: [raw] }] }] }
    const whole = foreign ?? { span: raw, ...about, scope_spans: scopeSpans }
    const span = spanIn(request)
    if (span) {
      const stored = spanOf(span, whole)
      if (stored.session !== undefined && this.sessions.size < TRACES_MAX)
        this.sessions.set(span.trace_id, stored.session)
      this.traces.store(stored)
    } else this.out.raw(textIn(objectIn(raw).traceId) ?? this.file_key, 'span', whole)
  }

  /** Records as the service takes them: they may say messages. */
  private logs({ scopeLogs, ...about }: JsonObject): void {
    const scopes = objectsIn(scopeLogs)
    const raws: JsonObject[] = scopes.flatMap(({ logRecords, ...scope }) =>
      listIn(logRecords).map((record) => ({ record, ...about, scope_logs: scope })),
    )
    const whole = recordsIn({ ...about, scopeLogs: scopes })
    // One that cannot be read costs no other.
    const read =
      whole.length === raws.length
        ? whole
        : raws.map(
            ({ record, scope_logs }) =>
              recordsIn({ ...about, scopeLogs: [{ ...objectIn(scope_logs), logRecords: [record] }] })[0],
          )
    const records = read.flatMap((record, place) =>
      record ? [{ ...record, attributes: { ...record.attributes, [PLACE]: place } }] : [],
    )
    for (const { user, configs, parts } of recordsBySession(records, 'otlp', NAMING).groups) {
      const [[attribute = '', name] = []] = Object.entries(objectIn(configs.otel))
      const of_trace = attribute === 'trace_id' ? this.sessions.get(String(name)) : undefined
      const key = of_trace ?? String(name)
      this.out.session(key, { user, configs: of_trace === undefined ? configs : without(configs, 'otel') })
      for (const { input, output, began_at, ended_at, type, data } of parts) {
        this.say(key, input, began_at)
        this.say(key, output, ended_at)
        const { attributes, messages, ...rest } = data()
        const { [PLACE]: place, ...others } = objectIn(attributes)
        const { last_id } = objectIn(messages)
        const said =
          last_id === undefined
            ? {}
            : { ...objectIn(messages), last_id: this.out.entryId(key, String(last_id)) }
        const told = { ...rest, ...(!isEmpty(said) && { messages: said }) }
        this.out.event(key, type, { ...told, attributes: others, raw: raws[Number(place)] }, { at: ended_at })
        delete raws[Number(place)]
      }
    }
    // Those that cannot be read, or are of no session and no trace, belong to the file.
    for (const raw of Object.values(raws)) this.out.raw(this.file_key, 'log', raw)
  }

  private say(key: string, links: readonly Link[], at: unknown): void {
    for (const { id, said } of links) {
      if (this.said.has(id)) continue
      if (this.said.size < LINKS_MAX) this.said.add(id)
      this.out.message(key, 'openai', openAiMessage(said) as JsonObject, { native: id, at })
    }
  }
}

function isRequest({ resourceSpans, resourceLogs, resourceMetrics, batches }: JsonObject): boolean {
  const is_tempo = objectsIn(batches).some(
    (batch) => Array.isArray(batch.scopeSpans) || Array.isArray(batch.instrumentationLibrarySpans),
  )
  return [resourceSpans, resourceLogs, resourceMetrics].some(Array.isArray) || is_tempo
}

const IDS: readonly [name: string, digits: number][] = [
  ['traceId', 32],
  ['spanId', 16],
  ['parentSpanId', 16],
]

/** What writes OTLP by the rules of protobuf has ids as base64. */
function withHexIds(span: unknown): unknown {
  if (!isJsonObject(span)) return span
  const found = IDS.filter(([name, digits]) => {
    const id = span[name]
    return typeof id === 'string' && id.length !== digits && /^[A-Za-z0-9+/]{10,22}={1,2}$/.test(id)
  })
  if (found.length === 0) return span
  return { ...span, ...Object.fromEntries(found.map(([name]) => [name, hexOf(span[name] as string)])) }
}

function hexOf(base64: string): string {
  const bytes = atob(base64)
  return Array.from(bytes, (char) => char.charCodeAt(0).toString(16).padStart(2, '0')).join('')
}

const LINKS_MAX = 500_000
const TRACES_MAX = 100_000
const NAMING: Naming = { idOf: (namespace, name) => stableId('otlp', namespace, name), digestOf }

/** Where a record's own text is kept while it is read. */
const PLACE = '\u0000place'

function recordsIn(group: JsonObject): LogRecord[] {
  try {
    return readLogRecords(new TextEncoder().encode(writeJson({ resourceLogs: [group] })), 'json').items
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return []
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
    call_id: textIn(tool?.id),
    configs: without({ agent, ...originOf(span, attributes) }),
    raw,
  }
}

function chatOf(said: readonly Said[]): unknown[] {
  return said.map((one) => openAiMessage(one))
}
