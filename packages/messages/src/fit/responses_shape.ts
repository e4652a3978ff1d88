import { isObject, type JsonObject } from '../blob_reading.js'
import { textOf } from '../json/exact_json.js'
import { itemKind, itemRole } from '../response_items.js'
import { isBlank, NO_RESULT, only, type Piece, type PieceIds, type Run, type Shape } from './pieces.js'

/** Calls of the caller's own tools, and their outputs. */
const CALLS = new Set(['function_call', 'custom_tool_call'])
const OUTPUTS = new Set(['function_call_output', 'custom_tool_call_output'])

const fields = (...names: string[]): ReadonlySet<string> => new Set(names)

/** What items of a request may have, where an answer's have more. Other items come back as they are. */
const RESPONSES_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  function_call: fields('type', 'id', 'call_id', 'name', 'arguments', 'status', 'caller', 'namespace'),
  function_call_output: fields('type', 'id', 'call_id', 'output', 'status', 'caller'),
  custom_tool_call: fields('type', 'id', 'call_id', 'name', 'input', 'caller', 'namespace'),
  custom_tool_call_output: fields('type', 'id', 'call_id', 'output', 'caller'),
  reasoning: fields('type', 'id', 'summary', 'content', 'encrypted_content', 'status'),
  image_generation_call: fields('type', 'id', 'result', 'status'),
}

export const RESPONSES_SHAPE: Shape = {
  joins_all: false,
  begins_with_user: false,
  says_beside_results: false,
  split: (items, ids) => items.flatMap((item) => runOf(item, ids)),
  turn: (_, pieces) => pieces.map(({ piece, source }) => ({ source, item: piece.block })),
  results: (results) => results.map(({ piece, source }) => ({ source, item: piece.block })),
  said: ({ pieces }, source) => pieces.map(({ block }) => ({ source, item: block })),

  renamed: ({ kind, block }, id, name) => ({
    ...block,
    call_id: id,
    ...(kind === 'call' && name !== undefined && 'name' in block && { name }),
  }),

  noResult({ block, call }) {
    const output = { call_id: call, output: NO_RESULT }
    if (block.type === 'function_call')
      return { type: 'function_call_output', ...output, status: 'incomplete' }
    return block.type === 'custom_tool_call' ? { type: 'custom_tool_call_output', ...output } : undefined
  },

  textOf: ({ output }) => {
    if (!Array.isArray(output)) return textOf(output)
    return output
      .flatMap((block) => (isObject(block) && typeof block.text === 'string' ? [block.text] : []))
      .join('\n')
  },

  mediaOf: ({ output }) =>
    (Array.isArray(output) ? output : [])
      .filter((block) => isObject(block) && block.type !== 'input_text')
      .map((block) => ({ kind: 'content', block: { type: 'message', role: 'user', content: [block] } })),

  text: (text) => ({
    side: 'user',
    head: {},
    pieces: [{ kind: 'content', block: { type: 'message', role: 'user', content: text } }],
  }),
}

function runOf(given: JsonObject, ids: PieceIds): Run[] {
  const type = typeof given.type === 'string' ? given.type : given.role != null ? 'message' : 'item_reference'
  const known = RESPONSES_FIELDS[type]
  const item = known ? withOnly(given, known) : given
  const piece = pieceOf(item, type, ids)
  if (piece === undefined) return []
  const side = sideOf(piece, item, type)
  return [{ side, head: {}, pieces: [piece] }]
}

/** What an item must have, be it null. */
const NULLABLE = new Set(['result'])

/** Programs that store what their SDK returns have null for what is not there, and the API takes it for few fields. */
function withOnly(item: JsonObject, known: ReadonlySet<string>): JsonObject {
  const nulls = Object.entries(item).filter(([key, value]) => value === null && NULLABLE.has(key))
  return { ...only(item, known), ...Object.fromEntries(nulls) }
}

/** Roles that a request takes. Messages that Conversations return have more. */
const ROLES = new Set(['user', 'assistant', 'system', 'developer'])

/** Whether an item is a message that only an answer of Conversations can be. */
export function isOfConversations({ type, role }: JsonObject): boolean {
  return type === 'message' && !ROLES.has(String(role))
}

/** The message without what is null in its content. */
function withoutNulls(item: JsonObject): JsonObject {
  if (!Array.isArray(item.content)) return item
  const content = item.content.map((block) =>
    isObject(block) ? Object.fromEntries(Object.entries(block).filter(([, value]) => value !== null)) : block,
  )
  return { ...item, content }
}

/** Items whose id a request need not have. */
const WITHOUT_ID = new Set([...CALLS, ...OUTPUTS, 'shell_call', 'apply_patch_call'])

/**
 * What the model said or called, without the reasoning that led to it. The API refuses an item that it knows by its id to
 * follow a reasoning item, if that is not there: so a message and a call go without an id, and the call of a tool of
 * OpenAI's, which cannot, is left out.
 */
export function withoutReasoningIds(piece: Piece): Piece | undefined {
  const { id, ...rest } = piece.block
  if (id === undefined || piece.raw !== undefined) return piece
  const { type } = rest
  if (WITHOUT_ID.has(String(type))) return { ...piece, block: rest }
  if (type !== 'message') return undefined
  const texts = Array.isArray(rest.content) ? rest.content.map(saidText) : [rest.content]
  const { status: _, ...message } = rest
  const content = texts.join('')
  return isBlank(content) ? undefined : { ...piece, block: { ...message, content } }
}

function saidText(block: unknown): string {
  if (!isObject(block)) return ''
  return textOf(block.text ?? block.refusal)
}

function pieceOf(item: JsonObject, type: string, { calls, results }: PieceIds): Piece | undefined {
  if (type === 'message')
    return isEmptyMessage(item) ? undefined : { kind: 'content', block: withoutNulls(item) }
  if (type === 'reasoning') return { kind: 'thinking', block: item }
  if (CALLS.has(type)) {
    const ids = calls.shift()
    return ids && { kind: 'call', block: withArguments(item), call: ids.id, name: ids.name }
  }
  if (OUTPUTS.has(type)) {
    const ids = results.shift()
    return (
      ids && { kind: 'result', block: item, call: ids.id, ...(ids.name !== undefined && { name: ids.name }) }
    )
  }
  const kind = itemKind(type)
  const call = callIdOf(item, type)
  if (kind === 'call' && call !== undefined) return { kind: 'call', block: item, call }
  if (type !== 'program_output' && type.endsWith('_output') && call !== undefined)
    return { kind: 'result', block: item, call }
  return { kind: 'content', block: item }
}

/** A built-in tool's call and its output name each other: a local shell's output by the call's id. */
function callIdOf({ call_id, id }: JsonObject, type: string): string | undefined {
  if (typeof call_id === 'string' && call_id !== '') return call_id
  return type === 'local_shell_call_output' && typeof id === 'string' ? id : undefined
}

function withArguments(item: JsonObject): JsonObject {
  if (item.type !== 'function_call') return item
  const { arguments: text } = item
  const is_empty =
    text == null || (typeof text === 'string' && (text.trim() === '' || text.trim() === 'null'))
  return is_empty ? { ...item, arguments: '{}' } : item
}

function isEmptyMessage({ content }: JsonObject): boolean {
  if (Array.isArray(content)) return content.length === 0
  return isBlank(content)
}

function sideOf({ kind }: Piece, item: JsonObject, type: string): Run['side'] {
  if (kind === 'result') return 'user'
  if (kind === 'call' || kind === 'thinking') return 'model'
  if (type === 'message') return item.role === 'assistant' ? 'model' : 'user'
  return itemRole(type) === 'assistant' ? 'model' : 'user'
}
