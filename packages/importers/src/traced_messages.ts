import { isJsonObject } from '@annals/messages/json'
import { openAiMessage, messagesIn as saidIn } from '@annals/otel'
import { chatMessageOf } from './chat_messages.js'
import { objectIn, objectsIn } from './json.js'
import type { JsonObject } from './records.js'

/** Where requests, answers and what was called with them have their messages. */
const PLACES = [
  'messages',
  'input',
  'contents',
  'choices',
  'candidates',
  'generations',
  'output',
  'content',
  'text',
  'prompt',
  'kwargs',
  'args',
]

/**
 * The messages in what a model was asked or answered, in the shapes that tracers have: as OpenAI's, of which a failed
 * result has `is_error`. A call may have an empty id, and its result the name of what was called: see `paired`.
 */
export function messagesIn(value: unknown, role: 'user' | 'assistant' = 'user'): JsonObject[] {
  if (typeof value === 'string') return value === '' ? [] : [{ role, content: value }]
  if (Array.isArray(value)) {
    // LangChain has a list of prompts, each a list of messages.
    const list = value.length > 0 && value.every(Array.isArray) ? (value[0] as unknown[]) : value
    const said = list.filter((one) => !isDefinition(one))
    return said.some(isOfConvention) ? ofConvention(said, role) : said.flatMap((one) => messagesIn(one, role))
  }
  if (!isJsonObject(value)) return []
  if (isJsonObject(value.message)) return messagesIn(value.message, role)
  if (isOfConvention(value)) return ofConvention([value], role)
  const said = chatMessageOf(value)
  if (said !== undefined) return [said]
  for (const name of PLACES) {
    const found = value[name] == null ? [] : messagesIn(value[name], role)
    if (found.length > 0) return role === 'user' ? [...toldBeside(value), ...found] : found
  }
  return []
}

/** Instructions that Anthropic's and Gemini's requests have beside the messages. */
function toldBeside(request: JsonObject): JsonObject[] {
  const { system, config } = request
  const told = system ?? objectIn(config).system_instruction ?? objectIn(config).systemInstruction
  return told == null ? [] : ofConvention([{ role: 'system', content: objectIn(told).parts ?? told }], 'user')
}

/** What the model may call, which Langfuse has among the messages of LangChain. */
function isDefinition(one: unknown): boolean {
  const { role, content } = objectIn(one)
  const { type, function: defined } = objectIn(content)
  return role === 'tool' && type === 'function' && isJsonObject(defined)
}

const ITEMS = /^(?:function_call|function_call_output|reasoning)$/
const TOOL_BLOCKS =
  /^(?:function|function_call|function_call_output|tool_use|tool_call|tool_result|tool_call_response)$/

/** A message that says more than OpenAI's fields: in parts, as an item of Responses, or with calls among its blocks. */
function isOfConvention(one: unknown): boolean {
  const { parts, type, content, tool_calls } = objectIn(one)
  if (Array.isArray(parts) || ITEMS.test(String(type))) return true
  return tool_calls === undefined && objectsIn(content).some((block) => TOOL_BLOCKS.test(String(block.type)))
}

function ofConvention(list: unknown[], role: 'user' | 'assistant'): JsonObject[] {
  const messages = list.map((one) => {
    const type = String(objectIn(one).type)
    return ITEMS.test(type) ? { role: type.endsWith('output') ? 'tool' : 'assistant', content: [one] } : one
  })
  return saidIn(messages, role).map((said) => {
    const blob = openAiMessage(said) as JsonObject
    if (said.role === 'tool')
      return { ...blob, tool_call_id: said.call_id, ...(said.is_error && { is_error: true }) }
    const tool_calls = objectsIn(blob.tool_calls).map((call, nth) => ({ ...call, id: said.calls[nth]!.id }))
    return tool_calls.length === 0 ? blob : { ...blob, tool_calls }
  })
}

/** The same messages, in which each call has an id, and each result that of its call: found by name, or by order. */
export function paired(messages: JsonObject[]): JsonObject[] {
  const open: Array<{ id: string; name: unknown }> = []
  let count = 0
  return messages.map((message) => {
    if (message.role === 'tool') {
      const own = message.tool_call_id
      const by_id = open.findIndex(({ id }) => id === own)
      const found = by_id < 0 ? open.findIndex(({ name }) => own === '' || own === name) : by_id
      const [call] = found < 0 ? [] : open.splice(found, 1)
      return { ...message, tool_call_id: call?.id ?? (own || 'unknown') }
    }
    const calls = objectsIn(message.tool_calls)
    if (calls.length === 0) return message
    const tool_calls = calls.map((call): JsonObject => ({ ...call, id: call.id || `call_${++count}` }))
    for (const { id, function: called } of tool_calls)
      open.push({ id: String(id), name: objectIn(called).name })
    return { ...message, tool_calls }
  })
}
