import { isJsonObject } from '@annals/messages/json'
import { objectIn, textIn } from '../json.js'
import type { JsonObject } from '../records.js'

/** The message that a call of a tool is, or its result, in what Cursor's agent writes to its output. */
export interface CursorMessage {
  native: string
  at: unknown
  blob: JsonObject
}

/** Cursor's lines are those of Claude Code, but for calls, of which one says that it starts and one that it is over. */
export function cursorMessageOf(line: JsonObject): CursorMessage | undefined {
  const { type, subtype, call_id: id, tool_call, timestamp_ms: at } = line
  if (type !== 'tool_call' || typeof id !== 'string' || !isJsonObject(tool_call)) return undefined
  const [found] = Object.entries(tool_call).filter(([, value]) => isJsonObject(value))
  if (!found) return undefined
  const [kind, value] = found
  const { args, result } = objectIn(value)
  if (subtype === 'started') {
    const { name, arguments: given } = objectIn(value)
    const tool = textIn(objectIn(args).toolName) ?? textIn(name) ?? kind.replace(/ToolCall$/, '')
    const use = { type: 'tool_use', id, name: tool, input: inputOf(args ?? given) }
    return { native: `call ${id}`, at, blob: { role: 'assistant', content: [use] } }
  }
  if (subtype !== 'completed') return undefined
  const { success } = objectIn(result)
  const told = objectIn(success)
  const content = textIn(told.content) ?? textIn(told.stdout) ?? JSON.stringify(success ?? result ?? '')
  const block = {
    type: 'tool_result',
    tool_use_id: id,
    content,
    ...(success === undefined && result !== undefined && { is_error: true }),
  }
  return { native: `result ${id}`, at, blob: { role: 'user', content: [block] } }
}

/** Arguments may be a text of JSON. */
function inputOf(given: unknown): JsonObject {
  if (typeof given !== 'string') return objectIn(given)
  try {
    return objectIn(JSON.parse(given))
  } catch {
    return { arguments: given }
  }
}
