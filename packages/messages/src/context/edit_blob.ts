import { isObject, type JsonObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { itemKind } from '../response_items.js'
import { callIn, idsOfCalls, isTurnOfResults, NONE, resultIn } from '../tool_blocks.js'

/** Parts that a message is shown without. Both lists are in the order of its results and calls. */
export interface MessageEdit {
  /** The text that stands for each result; null keeps it. */
  results: Array<string | null>
  /** Whether the arguments of each call are emptied. */
  inputs: boolean[]
}

type Editor = (blob: JsonObject, edit: MessageEdit) => unknown

const EDITORS: Readonly<Record<MessageFormat, Editor>> = {
  openai: editOpenAi,
  anthropic: editAnthropic,
  gemini: editGemini,
  acontext: editAcontext,
  responses: editResponses,
}

/** A copy of a message of a format, in the same format, in which results and arguments are replaced. */
export function editBlob(format: MessageFormat, blob: unknown, edit: MessageEdit): unknown {
  if (Array.isArray(blob)) return editTurn(blob, edit)
  return isObject(blob) ? EDITORS[format](blob, edit) : blob
}

function editOpenAi(blob: JsonObject, { results, inputs }: MessageEdit): JsonObject {
  if ((blob.role === 'tool' || blob.role === 'function') && !isTurnOfResults(blob)) {
    const [text = null] = results
    return text === null ? blob : { ...blob, content: text }
  }
  const known = idsOfCalls(blob)
  let nth = 0
  let result = 0
  const content = withEdited(blob, 'content', (block) => {
    if (resultIn(block)) {
      const text = results[result++] ?? null
      return text === null ? block : { ...withoutTyped(block), content: text }
    }
    const isCall = blob.role === 'assistant' && callIn(block, known) !== undefined
    return isCall && inputs[nth++] ? { ...withoutTyped(block), input: {} } : block
  })
  const calls = Array.isArray(blob.tool_calls) ? blob.tool_calls : []
  const edited = calls.map((call) => {
    if (!isObject(call)) return call
    const isBlock = callIn(call, NONE) !== undefined
    const isOwn = call.type === undefined || call.type === 'function' || call.type === 'custom'
    if (!(isOwn || isBlock) || !inputs[nth++]) return call
    if (isBlock) return { ...withoutTyped(call), input: {} }
    if (isObject(call.custom)) return { ...call, custom: { ...call.custom, input: '' } }
    return isObject(call.function) ? { ...call, function: { ...call.function, arguments: '{}' } } : call
  })
  const called = blob.function_call
  const isCleared = isObject(called) && inputs[nth]
  return {
    ...content,
    ...(calls.length > 0 && { tool_calls: edited }),
    ...(isCleared && { function_call: { ...called, arguments: '{}' } }),
  }
}

/** A block without what a call or a result has in forms of other programs. */
function withoutTyped({
  output: _output,
  args: _args,
  arguments: _arguments,
  ...block
}: JsonObject): JsonObject {
  return block
}

function editAnthropic(blob: JsonObject, { results, inputs }: MessageEdit): JsonObject {
  let result = 0
  let call = 0
  return withEdited(blob, 'content', (block) => {
    if (block.type === 'tool_use' && inputs[call++]) return { ...block, input: {} }
    if (block.type !== 'tool_result') return block
    const text = results[result++] ?? null
    return text === null ? block : { ...block, content: text }
  })
}

function editGemini(blob: JsonObject, { results, inputs }: MessageEdit): JsonObject {
  let result = 0
  let call = 0
  return withEdited(blob, 'parts', (part) => {
    const edited = { ...part }
    for (const key of ['functionCall', 'function_call']) {
      const called = part[key]
      if (isObject(called) && inputs[call++]) edited[key] = { ...called, args: {} }
    }
    for (const key of ['functionResponse', 'function_response']) {
      const answered = part[key]
      const text = isObject(answered) ? (results[result++] ?? null) : null
      if (!isObject(answered) || text === null) continue
      const { parts: _, ...rest } = answered
      edited[key] = { ...rest, response: { output: text } }
    }
    return edited
  })
}

function editAcontext(blob: JsonObject, { results, inputs }: MessageEdit): JsonObject {
  let result = 0
  let call = 0
  const cleared = new Set<unknown>()
  const edited = withEdited(blob, 'parts', (part) => {
    if (part.type === 'tool-call' && inputs[call++] && isObject(part.meta))
      return { ...part, meta: { ...part.meta, arguments: '{}' } }
    if (part.type !== 'tool-result') return part
    const text = results[result++] ?? null
    if (text === null) return part
    if (isObject(part.meta)) cleared.add(part.meta.tool_call_id)
    return { ...part, text }
  })
  if (cleared.size === 0 || !Array.isArray(edited.parts)) return edited
  // Media of a result are cleared with it.
  const isLeft = (part: unknown) =>
    !isObject(part) || !isMedium(part) || !isObject(part.meta) || !cleared.has(part.meta.tool_call_id)
  return { ...edited, parts: edited.parts.filter(isLeft) }
}

function isMedium({ type }: JsonObject): boolean {
  return type === 'image' || type === 'audio' || type === 'video' || type === 'file' || type === 'data'
}

/** An item is one call, or one result. */
function editResponses(
  blob: JsonObject,
  { results: [text = null], inputs: [isCleared] }: MessageEdit,
): JsonObject {
  switch (blob.type) {
    case 'function_call':
      return isCleared ? { ...blob, arguments: '{}' } : blob
    case 'custom_tool_call':
      return isCleared ? { ...blob, input: '' } : blob
    case 'function_call_output':
    case 'custom_tool_call_output':
      return text === null ? blob : { ...blob, output: text }
    default:
      return blob
  }
}

/** The items of a model's turn: calls, and what has none. */
function editTurn(items: unknown[], { inputs }: MessageEdit): unknown[] {
  let call = 0
  return items.map((item) => {
    if (!isObject(item) || !isCall(item)) return item
    return editResponses(item, { results: [], inputs: inputs.slice(call, ++call) })
  })
}

function isCall({ type }: JsonObject): boolean {
  return (
    typeof type === 'string' &&
    (type === 'function_call' || type === 'custom_tool_call' || itemKind(type) === 'call')
  )
}

function withEdited(blob: JsonObject, key: string, edit: (item: JsonObject) => JsonObject): JsonObject {
  const items = blob[key]
  return Array.isArray(items)
    ? { ...blob, [key]: items.map((item) => (isObject(item) ? edit(item) : item)) }
    : blob
}
