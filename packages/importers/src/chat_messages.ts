import { isJsonObject, writeJson } from '@annals/messages/json'
import { listIn, objectIn, objectsIn, textIn } from './json.js'
import type { JsonObject } from './records.js'

const ROLES: Record<string, string> = {
  human: 'user',
  user: 'user',
  ai: 'assistant',
  aimessagechunk: 'assistant',
  assistant: 'assistant',
  agent: 'assistant',
  model: 'assistant',
  system: 'system',
  developer: 'developer',
  tool: 'tool',
  function: 'tool',
}

/**
 * A message in OpenAI's chat format, of one as evaluations and traces have it: with `role` or LangChain's `type`, with
 * calls as `{ id, function: { name, arguments } }`, `{ id, function, arguments }` or `{ id, name, args }`. Undefined for
 * what is none.
 */
export function chatMessageOf(value: unknown): JsonObject | undefined {
  const message = unwrapped(value)
  if (message === undefined) return undefined
  const role = ROLES[String(message.role ?? message.type).toLowerCase()]
  if (role === undefined) return undefined
  const calls = callsOf(message)
  const id = textIn(message.tool_call_id)
  if (role === 'tool' && id === undefined) return { role: 'user', content: contentOf(message.content) }
  const content = contentOf(message.content)
  const thought = textIn(message.reasoning_content) ?? thoughtIn(message.content)
  return {
    role,
    content: content === '' && calls.length > 0 ? null : content,
    ...(role === 'tool' && { tool_call_id: id }),
    ...(role === 'assistant' && calls.length > 0 && { tool_calls: calls }),
    ...(thought !== '' && { reasoning_content: thought }),
  }
}

/** LangChain's messages stand in `kwargs` or `data`, OpenInference's in `message`. */
function unwrapped(value: unknown): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined
  if (isJsonObject(value.message) && value.role === undefined) return value.message
  if (isJsonObject(value.kwargs)) {
    const name = textIn(listIn(value.id).at(-1)) ?? ''
    return { type: name.replace(/Message(?:Chunk)?$/, '').toLowerCase(), ...value.kwargs }
  }
  if (isJsonObject(value.data) && typeof value.type === 'string') return { ...value.data, type: value.type }
  return value
}

function callsOf({ tool_calls, additional_kwargs }: JsonObject): JsonObject[] {
  const own = objectsIn(tool_calls)
  const calls = own.length > 0 ? own : objectsIn(objectIn(additional_kwargs).tool_calls)
  return calls.map((given, index) => {
    const call = isJsonObject(given.tool_call) ? given.tool_call : given
    const called = objectIn(call.function)
    const name =
      textIn(call.function) ??
      textIn(called.name) ??
      textIn(call.name) ??
      textIn(call.function_name) ??
      'unknown'
    const args = called.arguments ?? call.arguments ?? call.args ?? {}
    return {
      id: textIn(call.id) ?? textIn(call.tool_call_id) ?? `call_${index}`,
      type: 'function',
      function: { name, arguments: typeof args === 'string' ? args : writeJson(args) },
    }
  })
}

const NOT_SAID = new Set(['tool_use', 'tool_call', 'reasoning', 'thinking'])

/** What blocks of thoughts say, as Inspect and LangChain have them. */
function thoughtIn(content: unknown): string {
  return objectsIn(content)
    .filter(({ type }) => type === 'reasoning' || type === 'thinking')
    .map(
      (block) =>
        textIn(block.reasoning) ??
        textIn(block.thinking) ??
        textIn(block.text) ??
        textIn(block.summary) ??
        '',
    )
    .filter((text) => text !== '')
    .join('\n\n')
}

/** Content as a text where all of it is text, and else as parts, what is no part as JSON. */
function contentOf(content: unknown): unknown {
  if (typeof content === 'string') return content
  if (content == null) return ''
  if (!Array.isArray(content)) return writeJson(content)
  const said = content.filter((part) => !NOT_SAID.has(String(objectIn(part).type)))
  if (said.every((part) => typeof part === 'string' || textIn(objectIn(part).text) !== undefined))
    return said.map((part) => (typeof part === 'string' ? part : objectIn(part).text)).join('\n')
  return said.map((part) => {
    if (typeof part === 'string') return { type: 'text', text: part }
    const { type, text, image_url, image } = objectIn(part)
    if (type === 'text' && typeof text === 'string') return { type, text }
    if (type === 'image_url' && isJsonObject(image_url)) return { type, image_url }
    if (type === 'image' && typeof image === 'string') return { type: 'image_url', image_url: { url: image } }
    return { type: 'text', text: writeJson(part) }
  })
}

/** A message as it is stored. */
export interface Stored {
  format: 'openai' | 'anthropic'
  blob: JsonObject
}

/** A result of a call, in the format that can say how it went. */
export function resultOf(id: string, content: string, is_error: boolean): Stored {
  if (!is_error) return { format: 'openai', blob: { role: 'tool', tool_call_id: id, content } }
  const result = { type: 'tool_result', tool_use_id: id, content, is_error }
  return { format: 'anthropic', blob: { role: 'user', content: [result] } }
}
