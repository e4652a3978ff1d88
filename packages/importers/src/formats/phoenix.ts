import { isJsonObject } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { isEmpty, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { byStart, firstText, nested, parsed, type Span, Traces } from '../traces.js'

/** Spans in OpenInference's conventions, with attributes nested or flat, alone or in lists. */
export const PHOENIX: Format = {
  name: 'phoenix',
  title: 'spans exported from Arize Phoenix',
  knows: (sample) => isSpan(sample) || objectsIn(sample.spans ?? sample.data).some(isSpan),
  open: (output) => new PhoenixParser(output),
}

class PhoenixParser implements Parser {
  private readonly traces: Traces

  constructor(private readonly out: Output) {
    this.traces = new Traces(out)
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    if (isSpan(value)) this.traces.store(spanOf(value))
    else {
      const spans = byStart(value.spans ?? value.data, 'start_time')
      for (const span of spans) this.traces.store(spanOf(span))
      const others = without(value, 'spans', 'data')
      if (!isEmpty(others) && spans[0]) {
        const { session, trace_id } = spanOf(spans[0])
        this.out.raw(session ?? trace_id, 'page', others, { noise: true })
      }
    }
  }
}

function spanOf(span: JsonObject): Span {
  const context = objectIn(span.context)
  const given = { ...objectIn(parsed(span.attributes)), ...attributesBeside(span) }
  const { llm, input, output, tool, session, user, openinference } = nested(given) as Record<string, unknown>
  const model = objectIn(llm)
  const kind = String(span.span_kind ?? objectIn(objectIn(openinference).span).kind).toUpperCase()
  const is_failed = /^(?:STATUS_CODE_)?ERROR$/i.test(String(span.status_code ?? objectIn(span.status).code))
  const is_tool = kind === 'TOOL'
  const tool_arguments = objectIn(tool).parameters ?? objectIn(input).value
  return {
    id: firstText(context.span_id, span['context.span_id'], span.span_id, span.id) ?? 'span',
    trace_id: firstText(context.trace_id, span['context.trace_id'], span.trace_id) ?? 'trace',
    parent_id: firstText(span.parent_id, span.parentId),
    session: firstText(objectIn(session).id),
    user: objectIn(user).id,
    name: (is_tool ? textIn(objectIn(tool).name) : undefined) ?? textIn(span.name) ?? kind,
    kind: kind === 'LLM' ? 'model' : is_tool ? 'tool' : 'other',
    start: span.start_time ?? span.startTime,
    end: span.end_time ?? span.endTime,
    model: model.model_name,
    usage: model.token_count,
    error: is_failed
      ? (textIn(span.status_message) ?? textIn(objectIn(span.status).message) ?? 'error')
      : undefined,
    input: is_tool ? parsed(tool_arguments) : (model.input_messages ?? parsed(objectIn(input).value)),
    output: is_tool
      ? parsed(objectIn(output).value)
      : (model.output_messages ?? parsed(objectIn(output).value)),
    raw: span,
  }
}

/** Tables have a column for each attribute. */
function attributesBeside(span: JsonObject): JsonObject {
  const columns = Object.entries(span).filter(([name]) => name.startsWith('attributes.'))
  return Object.fromEntries(columns.map(([name, value]) => [name.slice('attributes.'.length), value]))
}

function isSpan(sample: JsonObject): boolean {
  const has_context = isJsonObject(sample.context) ? 'span_id' in sample.context : 'context.span_id' in sample
  return has_context && ('span_kind' in sample || 'attributes' in sample || 'start_time' in sample)
}
