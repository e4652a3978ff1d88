import { isJsonObject } from '@annals/messages/json'
import { messagesIn, openAiMessage } from '@annals/otel'
import type { FileFacts, Format, Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { timeOf } from '../times.js'
import { firstText, nested, parsed, type Span, Traces } from '../traces.js'

/** Calls of models as platforms log them: each is a span, and a session what they name as one. */
export const BEDROCK: Format = format(
  'bedrock-logs',
  'logs of model invocations of Amazon Bedrock',
  isBedrock,
  bedrockSpan,
)
export const VERTEX: Format = format(
  'vertex-logs',
  'requests and responses that Vertex AI logs',
  isVertex,
  vertexSpan,
)
export const BRAINTRUST: Format = format(
  'braintrust',
  'spans exported from Braintrust',
  isBraintrust,
  braintrustSpan,
)
export const HELICONE: Format = format(
  'helicone',
  'requests exported from Helicone',
  isHelicone,
  heliconeSpan,
)
export const WEAVE: Format = format('weave', 'calls exported from Weave', isWeave, weaveSpan)

function format(
  name: string,
  title: string,
  isCall: (sample: JsonObject) => boolean,
  spanOf: (call: JsonObject) => Span,
): Format {
  return {
    name,
    title,
    knows: (sample) => callsIn(sample).some(isCall),
    open: (output, file) => new CallsParser(output, file, isCall, spanOf),
  }
}

/** A call, or the calls of a page that an API returns. */
function callsIn(value: JsonObject): JsonObject[] {
  const pages = [value.data, value.events, value.calls, value.rows].filter(Array.isArray)
  return [value, ...pages.flatMap(objectsIn)]
}

class CallsParser implements Parser {
  private readonly traces: Traces

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
    private readonly isCall: (sample: JsonObject) => boolean,
    private readonly spanOf: (call: JsonObject) => Span,
  ) {
    this.traces = new Traces(out)
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    const calls = callsIn(value).filter(this.isCall)
    for (const call of byTime(calls.map(this.spanOf))) this.traces.store(call)
    if (calls.length > 0 && !calls.includes(value))
      this.out.raw(this.file.name, 'page', without(value, 'data', 'events', 'calls', 'rows'), { noise: true })
  }
}

function byTime(spans: Span[]): Span[] {
  const startOf = ({ start }: Span) => timeOf(start) ?? ''
  return spans.sort((a, b) => (startOf(a) < startOf(b) ? -1 : startOf(a) > startOf(b) ? 1 : 0))
}

/** Messages in whatever form a provider has them, as OpenAI's. */
function saidIn(value: unknown, role: 'user' | 'assistant'): JsonObject[] {
  const { system, systemInstruction, system_instruction } = objectIn(value)
  const told = system ?? systemInstruction ?? system_instruction
  const instructions = told == null ? [] : messagesIn([{ role: 'system', content: partsIn(told) }], 'system')
  return [...instructions, ...messagesIn(listed(value), role)].map((one) => openAiMessage(one) as JsonObject)
}

function partsIn(value: unknown): unknown {
  return isJsonObject(value) && Array.isArray(value.parts) ? value.parts : value
}

/** The messages within a request or an answer. */
function listed(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const { contents, candidates, output, message, prompt, inputText } = value
  if (Array.isArray(contents)) return contents
  if (Array.isArray(candidates)) return objectsIn(candidates).map(({ content }) => content)
  if (isJsonObject(output)) return listed(output)
  if (isJsonObject(message)) return [message]
  return 'messages' in value || 'choices' in value ? value : (textIn(prompt) ?? textIn(inputText) ?? value)
}

function isBedrock({ schemaType, modelId, input, output }: JsonObject): boolean {
  return (
    schemaType === 'ModelInvocationLog' &&
    modelId !== undefined &&
    (isJsonObject(input) || isJsonObject(output))
  )
}

function bedrockSpan(log: JsonObject): Span {
  const { timestamp, requestId, modelId, requestMetadata, identity, errorCode, operation } = log
  const input = objectIn(log.input)
  const output = objectIn(log.output)
  const answered = output.outputBodyJson
  const meta = objectIn(requestMetadata)
  return {
    id: String(requestId),
    trace_id: String(requestId),
    session: firstText(meta.session_id, meta.sessionId, meta.conversation_id, meta.conversationId),
    user: meta.user_id ?? meta.userId ?? objectIn(identity).arn,
    name: textIn(operation) ?? 'InvokeModel',
    kind: 'model',
    start: timestamp,
    model: String(modelId).replace(/^arn:.*\//, ''),
    usage: without({
      input_tokens: input.inputTokenCount,
      output_tokens: output.outputTokenCount,
      cached_tokens: input.cacheReadInputTokenCount,
      cache_write_tokens: input.cacheWriteInputTokenCount,
    }),
    error: errorCode,
    input: saidIn(input.inputBodyJson, 'user'),
    // A stream is logged as the events that it had.
    output: Array.isArray(answered) ? saidIn(streamed(answered), 'assistant') : saidIn(answered, 'assistant'),
    raw: log,
  }
}

/** The answer that a stream's events say: of Converse, or of Anthropic's models. */
function streamed(events: unknown[]): JsonObject {
  const blocks: JsonObject[] = []
  for (const event of objectsIn(events)) {
    const begun = objectIn(event.contentBlockStart ?? event)
    const { toolUse } = objectIn(begun.start)
    const started = isJsonObject(event.content_block) ? event.content_block : toolUse
    const at = Number(
      begun.contentBlockIndex ?? objectIn(event.contentBlockDelta).contentBlockIndex ?? event.index ?? 0,
    )
    if (!(at >= 0 && at <= 1_000)) continue
    if (isJsonObject(started))
      blocks[at] = {
        type: 'text',
        ...without(started, 'input'),
        ...(started.name != null && { type: 'tool_use', id: started.id ?? started.toolUseId }),
      }
    const delta = objectIn(objectIn(event.contentBlockDelta ?? event).delta)
    const text = textIn(delta.text)
    const given = textIn(delta.partial_json) ?? textIn(objectIn(delta.toolUse).input)
    if (text === undefined && given === undefined) continue
    const block = blocks[at] ?? { type: 'text' }
    blocks[at] =
      text === undefined
        ? { ...block, input: `${block.input ?? ''}${given}` }
        : { ...block, text: `${block.text ?? ''}${text}` }
  }
  return { message: { role: 'assistant', content: blocks.filter((block) => block !== undefined) } }
}

function isVertex(row: JsonObject): boolean {
  return 'full_request' in row && ('full_response' in row || 'logging_time' in row)
}

function vertexSpan(row: JsonObject): Span {
  const request = objectIn(parsed(row.full_request))
  const response = objectIn(parsed(row.full_response))
  const { labels } = request
  const { session_id, conversation_id } = objectIn(labels)
  const used = objectIn(response.usageMetadata ?? response.usage_metadata)
  const id = String(row.request_id ?? response.responseId)
  return {
    id,
    trace_id: id,
    session: firstText(session_id, conversation_id),
    name: textIn(row.api_method) ?? 'generateContent',
    kind: 'model',
    start: row.logging_time,
    model: firstText(row.model, row.deployed_model_id)?.replace(/^.*\//, ''),
    usage: without({
      input_tokens: used.promptTokenCount ?? used.prompt_token_count,
      output_tokens: used.candidatesTokenCount ?? used.candidates_token_count,
      cached_tokens: used.cachedContentTokenCount,
      reasoning_tokens: used.thoughtsTokenCount,
    }),
    error: response.error,
    input: saidIn(request, 'user'),
    output: saidIn(response, 'assistant'),
    raw: row,
  }
}

function isBraintrust({ span_id, root_span_id, span_attributes }: JsonObject): boolean {
  return typeof span_id === 'string' && typeof root_span_id === 'string' && isJsonObject(span_attributes)
}

function braintrustSpan(span: JsonObject): Span {
  const { span_id, root_span_id, span_parents, span_attributes, created } = span
  const { name, type } = objectIn(span_attributes)
  const metadata = objectIn(span.metadata)
  const { start, end, ...metrics } = objectIn(span.metrics)
  const is_tool = type === 'tool'
  return {
    id: String(span_id),
    trace_id: String(root_span_id),
    parent_id: textIn(listIn(span_parents)[0]),
    session: firstText(metadata.session_id, metadata.thread_id, metadata.conversation_id),
    user: metadata.user_id,
    name: textIn(name) ?? String(type),
    kind: type === 'llm' ? 'model' : is_tool ? 'tool' : 'other',
    start: start ?? created,
    end,
    model: textIn(metadata.model),
    usage: without({
      input_tokens: metrics.prompt_tokens,
      output_tokens: metrics.completion_tokens,
      total_tokens: metrics.tokens,
      cached_tokens: metrics.prompt_cached_tokens,
      cache_write_tokens: metrics.prompt_cache_creation_tokens,
      reasoning_tokens: metrics.completion_reasoning_tokens,
    }),
    error: span.error,
    input: is_tool ? span.input : saidIn(span.input, 'user'),
    output: is_tool ? span.output : saidIn(span.output, 'assistant'),
    raw: span,
  }
}

function isHelicone(row: JsonObject): boolean {
  const has_id = typeof row.request_id === 'string' || typeof row.response_id === 'string'
  return has_id && 'request_created_at' in row && ('request_body' in row || 'request_path' in row)
}

function heliconeSpan(row: JsonObject): Span {
  const properties = objectIn(parsed(row.request_properties ?? row.properties))
  const status = Number(row.response_status ?? row.status ?? 200)
  const response = objectIn(parsed(row.response_body))
  const id = String(row.request_id)
  return {
    id,
    trace_id: id,
    session: firstText(properties['Helicone-Session-Id'], row.session_id),
    user: row.request_user_id ?? row.user_id,
    name: firstText(properties['Helicone-Session-Name'], row.request_path) ?? 'request',
    kind: 'model',
    start: row.request_created_at,
    end: row.response_created_at,
    model: firstText(row.response_model, row.request_model, row.model_override, row.model),
    usage: without({
      input_tokens: row.prompt_tokens,
      output_tokens: row.completion_tokens,
      total_tokens: row.total_tokens,
      cached_tokens: row.prompt_cache_read_tokens,
      cache_write_tokens: row.prompt_cache_write_tokens,
    }),
    error: response.error ?? (status >= 400 ? status : undefined),
    input: saidIn(parsed(row.request_body), 'user'),
    output: saidIn(response, 'assistant'),
    raw: row,
  }
}

function isWeave({ op_name, trace_id, started_at, project_id }: JsonObject): boolean {
  return (
    typeof op_name === 'string' &&
    typeof trace_id === 'string' &&
    (started_at !== undefined || project_id !== undefined)
  )
}

function weaveSpan(row: JsonObject): Span {
  const call = Object.keys(row).some((name) => name.startsWith('inputs.')) ? nested(row) : row
  const { id, trace_id, parent_id, thread_id, op_name, started_at, ended_at, exception, wb_user_id } = call
  const inputs = objectIn(parsed(call.inputs))
  const output = parsed(call.output)
  const [[model, usage] = []] = Object.entries(objectIn(objectIn(call.summary).usage))
  const name = String(op_name)
    .replace(/^.*\/op\//, '')
    .replace(/:[^:]*$/, '')
  const is_model =
    model !== undefined &&
    (Array.isArray(inputs.messages) || 'contents' in inputs || 'input' in inputs) &&
    /\.(?:create|parse|generate_content|stream|invoke|completion|acompletion)$|chat|llm/i.test(name)
  const is_tool = /tool/i.test(String(objectIn(call.attributes).kind ?? ''))
  return {
    id: String(id),
    trace_id: String(trace_id),
    parent_id: textIn(parent_id),
    session: firstText(thread_id),
    user: wb_user_id,
    name: textIn(call.display_name) ?? name,
    kind: is_model ? 'model' : is_tool ? 'tool' : 'other',
    start: started_at,
    end: ended_at,
    model: is_model ? model : undefined,
    usage: is_model && !isEmpty(objectIn(usage)) ? usage : undefined,
    error: exception,
    input: is_model ? saidIn(inputs, 'user') : inputs,
    output: is_model ? saidIn(output, 'assistant') : output,
    raw: row,
  }
}
