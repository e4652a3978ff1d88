import { isJsonObject } from '@annals/messages/json'
import { conversationOf, meaningOf, openAiMessage, sessionNamed, userNamed } from '@annals/otel'
import type { Format, Parser } from '../format.js'
import { isEmpty, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { byEnd, firstText, nested, parsed, type Span, Traces } from '../traces.js'

/** Spans in OpenInference's conventions, with attributes nested or flat, alone or in lists. */
export const PHOENIX: Format = {
  name: 'phoenix',
  title: 'spans exported from Arize Phoenix and Logfire, or to the console',
  knows: (sample) => isSpan(sample) || objectsIn(sample.spans ?? sample.data).some(isSpan),
  open: (output) => new PhoenixParser(output, new Traces(output, 'told')),
}

class PhoenixParser implements Parser {
  constructor(
    private readonly out: Output,
    private readonly traces: Traces,
  ) {}

  end(): void {
    this.traces.end()
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    if (isSpan(value)) this.traces.store(spanOf(value))
    else {
      const spans = byEnd(value.spans ?? value.data, 'start_time', 'end_time')
      for (const span of spans) this.traces.store(spanOf(span))
      const others = without(value, 'spans', 'data')
      if (!isEmpty(others) && spans[0]) {
        const { session, trace_id } = spanOf(spans[0])
        this.out.raw(session ?? trace_id, 'page', others, { noise: true })
      }
    }
  }
}

/** A span in other conventions, as Logfire and the exporter to the console write them. */
function otherSpanOf(span: JsonObject, own: Span): Span {
  const attributes = { ...objectIn(parsed(span.attributes)), ...attributesBeside(span) }
  const events = objectsIn(parsed(span.events ?? span.otel_events)).map(
    ({ name, event_name, attributes: told }) => ({
      name: String(name ?? event_name),
      attributes: objectIn(told),
    }),
  )
  const { operation, model, usage, tool, agent } = meaningOf(own.name, attributes, events)
  const conversation = operation === 'model' ? conversationOf({ attributes, events }) : undefined
  const resource = objectIn(objectIn(span.resource).attributes ?? span.otel_resource_attributes)
  return {
    ...own,
    session: sessionNamed({ ...resource, ...attributes })?.[1],
    user: userNamed({ ...resource, ...attributes }),
    name: textIn(tool?.name) ?? own.name,
    kind: operation === 'model' ? 'model' : operation === 'tool' ? 'tool' : 'other',
    model,
    usage: isEmpty(usage) ? undefined : usage,
    input: conversation ? conversation.input.map((said) => openAiMessage(said)) : parsed(tool?.arguments),
    output: conversation ? conversation.output.map((said) => openAiMessage(said)) : parsed(tool?.result),
    call_id: textIn(tool?.id),
    configs: without({ agent, service: resource['service.name'] ?? span.service_name }),
  }
}

function spanOf(span: JsonObject): Span {
  const own = openInferenceSpan(span)
  const { kind, model, input } = own
  const is_known =
    kind !== 'other' || model !== undefined || input !== undefined || span.span_kind !== undefined
  return is_known ? own : otherSpanOf(span, own)
}

function openInferenceSpan(span: JsonObject): Span {
  const context = objectIn(span.context)
  const given = { ...objectIn(parsed(span.attributes)), ...attributesBeside(span) }
  const { llm, input, output, tool, session, user, openinference, tool_call } = nested(given) as Record<
    string,
    unknown
  >
  const model = objectIn(llm)
  const kind = String(span.span_kind ?? objectIn(objectIn(openinference).span).kind).toUpperCase()
  const is_failed = /^(?:STATUS_CODE_)?ERROR$/i.test(
    String(
      span.status_code ??
        span.otel_status_code ??
        objectIn(span.status).status_code ??
        objectIn(span.status).code,
    ),
  )
  const is_tool = kind === 'TOOL'
  const tool_arguments = objectIn(tool).parameters ?? objectIn(input).value
  return {
    id: firstText(context.span_id, span['context.span_id'], span.span_id, span.id) ?? 'span',
    trace_id: firstText(context.trace_id, span['context.trace_id'], span.trace_id) ?? 'trace',
    parent_id: firstText(span.parent_id, span.parentId),
    session: firstText(objectIn(session).id),
    user: objectIn(user).id,
    name:
      (is_tool ? textIn(objectIn(tool).name) : undefined) ??
      textIn(span.name) ??
      textIn(span.span_name) ??
      kind,
    kind: kind === 'LLM' ? 'model' : is_tool ? 'tool' : 'other',
    start: span.start_time ?? span.startTime ?? span.start_timestamp,
    end: span.end_time ?? span.endTime ?? span.end_timestamp,
    model: model.model_name,
    usage: model.token_count,
    error: is_failed
      ? (textIn(span.status_message) ??
        textIn(span.otel_status_message) ??
        textIn(objectIn(span.status).message) ??
        textIn(objectIn(span.status).description) ??
        'error')
      : undefined,
    input: is_tool
      ? parsed(tool_arguments)
      : (messagesOf(model.input_messages) ?? parsed(objectIn(input).value)),
    output: is_tool
      ? parsed(objectIn(output).value)
      : (messagesOf(model.output_messages) ?? parsed(objectIn(output).value)),
    call_id: textIn(objectIn(tool).id) ?? textIn(objectIn(tool_call).id),
    raw: span,
  }
}

/** Tables have messages as JSON, with flat names. */
function messagesOf(value: unknown): unknown {
  const read = parsed(value)
  return Array.isArray(read) ? read.map((one) => (isJsonObject(one) ? nested(one) : one)) : read
}

/** Tables have a column for each attribute. */
function attributesBeside(span: JsonObject): JsonObject {
  const columns = Object.entries(span).filter(([name]) => name.startsWith('attributes.'))
  return Object.fromEntries(columns.map(([name, value]) => [name.slice('attributes.'.length), value]))
}

function isSpan(sample: JsonObject): boolean {
  if ('span_id' in sample && 'start_timestamp' in sample && 'trace_id' in sample) return true
  const has_context = isJsonObject(sample.context) ? 'span_id' in sample.context : 'context.span_id' in sample
  return has_context && ('span_kind' in sample || 'attributes' in sample || 'start_time' in sample)
}
