import { isObject, type JsonObject } from '../blob_reading.js'
import { textOf, writeJson } from '../json/exact_json.js'
import { dataPart, type Part, part } from '../parts.js'
import { textOfContent } from './records.js'

/** The messages in an event of a framework's adapter. */
export interface FrameworkMessage {
  speaker: string
  parts: Part[]
}

/** The messages that an event of Pydantic AI or LangGraph holds, if its data is readable JSON. */
export function frameworkMessages(type: string, data: JsonObject): FrameworkMessage[] {
  if (type === 'pydantic_ai.entry') return pydanticMessage(data.message)
  // A channel's value has all messages so far, so only what was written to it is read, and what a graph began with.
  if (type === 'langgraph.write' || (type === 'langgraph.channel' && data.channel === '__start__'))
    return langChainMessages(openedValue(data.value))
  return []
}

/** A value as LangGraph's checkpointer stores it, without its wrapping, if it is JSON. */
export function openedValue(stored: unknown): unknown {
  return isObject(stored) && stored.type === 'json' && 'json' in stored ? stored.json : stored
}

const PYDANTIC_TEXTS = new Set(['system-prompt', 'user-prompt', 'text', 'retry-prompt', 'retry-feedback'])

function pydanticMessage(message: unknown): FrameworkMessage[] {
  const stored = isObject(message) && Array.isArray(message.parts) ? message.parts.filter(isObject) : []
  if (stored.length === 0) return []
  const parts = stored.flatMap(pydanticPart)
  const is_tool = parts.every(({ type }) => type === 'tool-result')
  const is_system = stored.every(({ part_kind }) => part_kind === 'system-prompt')
  const asker = is_tool ? 'tool' : is_system ? 'system' : 'user'
  return [{ speaker: isObject(message) && message.kind === 'response' ? 'assistant' : asker, parts }]
}

function pydanticPart(stored: JsonObject): Part[] {
  const { part_kind, content, tool_name, tool_call_id, outcome } = stored
  const kind = textOf(part_kind).replace('builtin-', '')
  const name = textOf(tool_name)
  const id = textOf(tool_call_id)
  if (kind === 'tool-call')
    return [part('tool-call', null, { id, name, arguments: textOf(stored.args ?? '{}') })]
  const is_retry = kind === 'retry-prompt' && name !== ''
  if (kind === 'tool-return' || is_retry) {
    const is_error = is_retry || outcome === 'failed' || outcome === 'retried'
    const meta = { tool_call_id: id, name, ...(is_error && { is_error }) }
    return [part('tool-result', textOfContent(content), meta)]
  }
  if (kind === 'thinking') return [part('thinking', textOf(content), null)]
  if (!PYDANTIC_TEXTS.has(kind)) return [dataPart(stored, kind)]
  return contentParts(content)
}

/** LangChain's messages in a value that is one, a list of them, or an object of such lists. */
function langChainMessages(value: unknown): FrameworkMessage[] {
  const lists = isObject(value) && !isLangChain(value) ? Object.values(value) : [value]
  return lists
    .flatMap((list) => (Array.isArray(list) ? list : [list]))
    .filter(isLangChain)
    .map(langChainMessage)
}

const SPEAKERS = new Map([
  ['HumanMessage', 'user'],
  ['user', 'user'],
  ['human', 'user'],
  ['SystemMessage', 'system'],
  ['system', 'system'],
  ['ToolMessage', 'tool'],
  ['AIMessage', 'assistant'],
  ['AIMessageChunk', 'assistant'],
  ['assistant', 'assistant'],
])

type LangChainMessage =
  | { lc: unknown; id: unknown[]; kwargs: JsonObject }
  | { role: string; content: unknown }

/** As LangChain serializes a message, or in its short form. */
function isLangChain(value: unknown): value is LangChainMessage {
  if (!isObject(value)) return false
  if (isObject(value.kwargs)) return Array.isArray(value.id) && SPEAKERS.has(textOf(value.id.at(-1)))
  return typeof value.role === 'string' && SPEAKERS.has(value.role) && 'content' in value
}

function langChainMessage(message: LangChainMessage): FrameworkMessage {
  if ('role' in message) return { speaker: SPEAKERS.get(message.role)!, parts: contentParts(message.content) }
  const speaker = SPEAKERS.get(textOf(message.id.at(-1)))!
  const { content, tool_calls, tool_call_id, name, status } = message.kwargs
  if (speaker === 'tool') {
    const meta = { tool_call_id: textOf(tool_call_id), ...(typeof name === 'string' && { name }) }
    const is_error = status === 'error' ? { is_error: true } : {}
    return { speaker, parts: [part('tool-result', textOfContent(content), { ...meta, ...is_error })] }
  }
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isObject) : []
  const made = calls.map(({ id, name, args }) =>
    part('tool-call', null, { id: textOf(id), name: textOf(name), arguments: textOf(args ?? '{}') }),
  )
  return { speaker, parts: [...contentParts(content), ...made] }
}

/** Blocks that repeat what stands in a message's `tool_calls`. */
const REPEATS = new Set(['tool_use', 'tool_call', 'input_json_delta'])

function contentParts(content: unknown): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [part('text', content, null)]
  if (!Array.isArray(content)) return content == null ? [] : [part('text', writeJson(content), null)]
  return content.flatMap((block): Part[] => {
    if (typeof block === 'string') return contentParts(block)
    if (!isObject(block) || REPEATS.has(textOf(block.type))) return []
    const thought = block.thinking ?? block.reasoning
    if (typeof thought === 'string') return [part('thinking', thought, null)]
    if (typeof block.text === 'string') return contentParts(block.text)
    return [dataPart(block, textOf(block.type ?? block.kind ?? 'content'))]
  })
}
