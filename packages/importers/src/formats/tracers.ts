import { isJsonObject } from '@annals/messages/json'
import type { FileFacts, Format, Parser } from '../format.js'
import { objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { OtlpParser } from './otlp.js'

/** Traces of Jaeger, as its API and its page give them: spans name their process, and tags have types. */
export const JAEGER: Format = {
  name: 'jaeger',
  title: 'traces of Jaeger',
  streamed: ['data'],
  knows: (sample) =>
    isJaegerTrace(sample) || objectsIn(sample.data).some(isJaegerTrace) || isCutJaeger(sample),
  open: (output, file) => new SpanParser(output, file, jaegerGroups),
}

/** Spans of Zipkin. */
export const ZIPKIN: Format = {
  name: 'zipkin',
  title: 'spans of Zipkin',
  knows: (sample) => isZipkinSpan(sample),
  open: (output, file) => new SpanParser(output, file, zipkinGroups),
}

/** A span as OpenTelemetry's, what is around it, and the span as it was. */
interface Converted {
  span: JsonObject
  about: JsonObject
  raw: JsonObject
}

type Groups = (value: unknown) => Converted[]

/** Reads spans as if they were those of OpenTelemetry. */
class SpanParser implements Parser {
  private readonly otlp: OtlpParser

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
    private readonly groupsOf: Groups,
  ) {
    this.otlp = new OtlpParser(out, file)
  }

  read(value: unknown): void {
    const groups = this.groupsOf(value)
    for (const { span, about, raw } of groups) this.otlp.foreignSpan(span, about, raw)
    if (groups.length > 0 || !isJsonObject(value)) return
    const rest = without(value, 'data')
    const is_nothing = Object.values(rest).every((one) => one === 0 || one === '')
    if (is_nothing) this.out.accept()
    else this.out.raw(this.file.name, 'page', value, { noise: true })
  }
}

function isJaegerTrace({ traceID, spans, processes }: JsonObject): boolean {
  return typeof traceID === 'string' && Array.isArray(spans) && isJsonObject(processes)
}

/** The answer of Jaeger's API, of which no trace is whole at its beginning. */
function isCutJaeger({ data, total, limit, errors }: JsonObject): boolean {
  return Array.isArray(data) && typeof total === 'number' && typeof limit === 'number' && errors !== undefined
}

function isZipkinSpan({ traceId, id, timestamp, localEndpoint, tags, annotations }: JsonObject): boolean {
  const is_named = typeof traceId === 'string' && /^[0-9a-f]{16,32}$/i.test(traceId) && typeof id === 'string'
  return (
    is_named &&
    (isJsonObject(localEndpoint) ||
      isJsonObject(tags) ||
      Array.isArray(annotations) ||
      typeof timestamp === 'number')
  )
}

function jaegerGroups(value: unknown): Converted[] {
  if (!isJsonObject(value)) return []
  if (Array.isArray(value.data)) return value.data.flatMap(jaegerGroups)
  if (!isJaegerTrace(value)) return []
  const { spans, processes, ...trace } = value
  return byTime(objectsIn(spans), 'startTime').map((span, index) => {
    const process = objectIn(span.process ?? objectIn(processes)[String(span.processID)])
    const { traceID, spanID, operationName, references, startTime, duration, tags, logs } = span
    const above = objectsIn(references).find(
      ({ refType, traceID: of }) => refType === 'CHILD_OF' && of === traceID,
    )
    const { serviceName, tags: process_tags } = process
    // What is said of all is kept with the first.
    const around = index === 0 ? { processes, trace } : { process }
    return groupOf(
      [{ key: 'service.name', value: serviceName }, ...objectsIn(process_tags)],
      {
        traceId: idIn(traceID, 32),
        spanId: idIn(spanID, 16),
        parentSpanId: idIn(above?.spanID ?? span.parentSpanID, 16),
        name: operationName,
        ...timesOf(startTime, duration),
        events: objectsIn(logs).map(({ timestamp, fields }) => {
          const name = objectsIn(fields).find(({ key }) => key === 'event')?.value
          return {
            timeUnixNano: nanos(timestamp),
            name: textIn(name) ?? 'log',
            attributes: attributesOf(objectsIn(fields)),
          }
        }),
        links: objectsIn(references)
          .filter((one) => one !== above)
          .map((one) => ({ traceId: idIn(one.traceID, 32), spanId: idIn(one.spanID, 16) })),
      },
      objectsIn(tags),
      { span, ...around },
    )
  })
}

function zipkinGroups(value: unknown): Converted[] {
  // The API returns a list of traces, each a list of spans.
  if (Array.isArray(value)) return byTime(value.filter(isJsonObject), 'timestamp').flatMap(zipkinGroups)
  if (!isJsonObject(value) || !isZipkinSpan(value)) return []
  const { traceId, id, parentId, name, timestamp, duration, localEndpoint, annotations, tags } = value
  const { serviceName } = objectIn(localEndpoint)
  return [
    groupOf(
      [{ key: 'service.name', value: serviceName }],
      {
        traceId: idIn(traceId, 32),
        spanId: idIn(id, 16),
        parentSpanId: idIn(parentId, 16),
        name,
        ...timesOf(timestamp, duration),
        events: objectsIn(annotations).map(({ timestamp: at, value: said, ...more }) => ({
          timeUnixNano: nanos(at),
          name: textIn(said) ?? 'annotation',
          attributes: attributesOf(Object.entries(more).map(([key, one]) => ({ key, value: one }))),
        })),
      },
      Object.entries(objectIn(tags)).map(([key, one]) => ({ key, value: one })),
      { span: value },
    ),
  ]
}

function groupOf(resource: JsonObject[], span: JsonObject, tags: JsonObject[], raw: JsonObject): Converted {
  const tag = (name: string) => tags.find(({ key }) => key === name)?.value
  const code = String(tag('otel.status_code') ?? '').toUpperCase()
  const error = tag('error')
  const has_failed = code === 'ERROR' || (error !== undefined && error !== false && error !== 'false')
  const told = tag('otel.status_description') ?? (typeof error === 'string' && error !== 'true' ? error : '')
  const status = has_failed ? { code: 2, message: told } : code === 'OK' ? { code: 1 } : undefined
  const scope = { name: tag('otel.scope.name') ?? tag('otel.library.name') }
  return {
    span: { ...without(span), status, attributes: attributesOf(tags) },
    about: { resource: { attributes: attributesOf(resource) }, scopeSpans: { scope: without(scope) } },
    raw,
  }
}

/** Tags as attributes. Jaeger says which type a value has, and writes large integers as text. */
function attributesOf(tags: JsonObject[]): JsonObject[] {
  return tags
    .filter(({ value }) => value != null)
    .map(({ key, value, type }) => ({ key: String(key), value: taggedValue(value, type) }))
}

function taggedValue(value: unknown, type: unknown): JsonObject {
  if (typeof value === 'boolean') return { boolValue: value }
  if (type === 'bool') return { boolValue: value === 'true' }
  if (type === 'int64' && /^-?\d+$/.test(String(value))) return { intValue: String(value) }
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  return { stringValue: typeof value === 'string' ? value : JSON.stringify(value) }
}

function timesOf(start: unknown, duration: unknown): JsonObject {
  const began = typeof start === 'number' ? start : Number(start)
  const lasted = typeof duration === 'number' ? duration : 0
  return Number.isSafeInteger(began) && began > 0
    ? { startTimeUnixNano: nanos(began), endTimeUnixNano: nanos(began + lasted) }
    : {}
}

/** Microseconds as nanoseconds. */
function nanos(micros: unknown): string {
  const number = Math.round(Number(micros))
  return Number.isSafeInteger(number) && number > 0 ? `${number}000` : '0'
}

/** Ids may be of half the length, or lack zeros at their beginning. */
function idIn(id: unknown, length: number): string | undefined {
  return typeof id === 'string' && id !== '' ? id.toLowerCase().padStart(length, '0') : undefined
}

function byTime(spans: JsonObject[], name: string): JsonObject[] {
  return spans.sort((a, b) => Number(a[name] ?? 0) - Number(b[name] ?? 0))
}
