import { isObject, type JsonObject } from '../blob_reading.js'
import { FOREIGN_SIGNATURE } from '../gemini_out.js'
import { textOf } from '../json/exact_json.js'
import { kindOfPart, takenPart } from './gemini_parts.js'
import { NO_RESULT, type Piece, type PieceIds, type Run, type Shape } from './pieces.js'

/** The fields of which a part has one, in both spellings. */
const CALL = ['functionCall', 'function_call'] as const
const RESULT = ['functionResponse', 'function_response'] as const

export const GEMINI_SHAPE: Shape = {
  // A call's turn must come directly after one of the user's.
  joins_all: true,
  begins_with_user: true,
  says_beside_results: false,

  split(items, ids, omit) {
    const runs: Run[] = []
    for (const item of items) {
      const side = item.role === 'model' ? 'model' : 'user'
      for (const part of Array.isArray(item.parts) ? item.parts.filter(isObject) : []) {
        const piece = pieceOf(part, ids)
        if (piece === undefined) {
          if (part.text === undefined) omit(kindOfPart(part), part)
          continue
        }
        const speaker = sideOf(piece, side)
        const last = runs.at(-1)
        if (last?.side === speaker) last.pieces.push(...withMediaBeside(piece))
        else runs.push({ side: speaker, head: {}, pieces: withMediaBeside(piece) })
      }
    }
    return runs
  },

  turn: (_, pieces) => {
    const [{ source }] = pieces as [(typeof pieces)[number]]
    let calls = 0
    const draws = pieces.some(({ piece }) => isPicture(piece.block))
    let is_first = draws
    const parts = pieces.map(({ piece: { kind, block } }) => {
      // Pictures are signed, and so is what is said ahead of the first one.
      if (kind === 'content' && draws) {
        const wanted = isPicture(block) || (is_first && block.text !== undefined)
        is_first = false
        return wanted ? signed(block) : block
      }
      if (kind !== 'call') return block
      // The first of parallel calls is signed, and what is signed before it does not count.
      if (calls++ === 0) return signed(block)
      if (signatureOf(block) !== FOREIGN_SIGNATURE) return block
      const { thoughtSignature: _, thought_signature: __, ...rest } = block
      return rest
    })
    return [{ source, item: { role: 'model', parts } }]
  },

  results: (results) => {
    const [first] = results
    if (!first) return []
    const { source } = first
    const partsOf = (isMedium: boolean) =>
      results.flatMap(({ piece: { kind, block } }) => ((kind === 'medium') === isMedium ? block : []))
    return [partsOf(false), partsOf(true)].flatMap((parts) =>
      parts.length > 0 ? { source, item: { role: 'user', parts } } : [],
    )
  },

  said: ({ pieces }, source) => [{ source, item: { role: 'user', parts: pieces.map(({ block }) => block) } }],

  renamed(piece, id, name) {
    const key = keyOf(piece.block, piece.kind === 'call' ? CALL : RESULT)!
    const { id: had, ...rest } = piece.block[key] as JsonObject
    return {
      ...piece.block,
      [key]: { ...(hasId(had) && { id }), ...rest, ...(name !== undefined && { name }) },
    }
  },

  // A response names its call by the id that this one has, and by none where it has none.
  answering({ block }, result) {
    const { id } = callOf(block)
    const key = keyOf(result, RESULT)!
    const { id: _, ...field } = responseOf(result)
    return { ...result, [key]: hasId(id) ? { id, ...field } : field }
  },

  noResult({ block, call, name }) {
    const had_id = hasId(callOf(block).id)
    const key = keyOf(block, CALL) === 'function_call' ? 'function_response' : 'functionResponse'
    return { [key]: { ...(had_id && { id: call }), name: name ?? '', response: { error: NO_RESULT } } }
  },

  textOf(part) {
    const { response } = responseOf(part)
    if (!isObject(response)) return ''
    const said = 'output' in response ? response.output : 'error' in response ? response.error : response
    return textOf(said)
  },

  mediaOf: (part) => {
    const { parts } = responseOf(part)
    return (Array.isArray(parts) ? parts : []).filter(isObject).map((block) => ({ kind: 'content', block }))
  },

  text: (text) => ({ side: 'user', head: {}, pieces: [{ kind: 'content', block: { text } }] }),
}

function signatureOf(block: JsonObject): unknown {
  return block.thoughtSignature ?? block.thought_signature
}

/** The part with a signature, in the spelling of its other fields. */
function signed(block: JsonObject): JsonObject {
  if (signatureOf(block)) return block
  const isSnake = Object.keys(block).some((key) => key.includes('_'))
  return { ...block, [isSnake ? 'thought_signature' : 'thoughtSignature']: FOREIGN_SIGNATURE }
}

/** Whether a part is a picture, which models that draw want signed. */
function isPicture(part: JsonObject): boolean {
  const field = part.inlineData ?? part.inline_data ?? part.fileData ?? part.file_data
  const type = isObject(field) ? (field.mimeType ?? field.mime_type) : undefined
  return part.thought !== true && typeof type === 'string' && /^image\//i.test(type)
}

function hasId(id: unknown): boolean {
  return typeof id === 'string' && id !== ''
}

function callOf(part: JsonObject): JsonObject {
  return part[keyOf(part, CALL)!] as JsonObject
}

function responseOf(part: JsonObject): JsonObject {
  return part[keyOf(part, RESULT)!] as JsonObject
}

function keyOf<Key extends string>(part: JsonObject, keys: readonly Key[]): Key | undefined {
  return keys.find((key) => isObject(part[key]))
}

/** A part as a piece; undefined for one that says nothing. */
function pieceOf(given: JsonObject, { calls, results }: PieceIds): Piece | undefined {
  const part = takenPart(given)
  if (part === undefined) return undefined
  const isCall = keyOf(part, CALL) !== undefined
  const isResult = keyOf(part, RESULT) !== undefined
  if (isCall) {
    const ids = calls.pop()
    if (ids) return { kind: 'call', block: withObject(part, CALL, 'args'), call: ids.id, name: ids.name }
  }
  if (isResult) {
    const ids = results.pop()
    const named = ids?.name !== undefined && { name: ids.name }
    const block = withObject(part, RESULT, 'response')
    if (ids) return { kind: 'result', block, call: ids.id, ...named }
  }
  const hosted = hostedPiece(part)
  if (hosted) return hosted
  const is_signed = signatureOf(part) != null
  const others = Object.keys(part).filter((key) => part[key] != null && key !== 'text' && key !== 'thought')
  if (typeof part.text === 'string' && part.text === '' && !is_signed && others.length === 0) return undefined
  if (Object.keys(part).every((key) => part[key] == null || key === 'thought') || isEmptyMedium(part))
    return undefined
  return { kind: part.thought === true ? 'thinking' : 'content', block: part }
}

/** Media that a response may have: https://ai.google.dev/gemini-api/docs/function-calling */
const INSIDE = /^(image\/(png|jpeg|webp)|application\/pdf|text\/plain)\b/i

/** A response, and beside it what it may not have itself: sound, film, links. */
function withMediaBeside(piece: Piece): Piece[] {
  const key = piece.kind === 'result' ? keyOf(piece.block, RESULT)! : undefined
  const { parts, ...response } = key ? (piece.block[key] as JsonObject) : {}
  if (!key || !Array.isArray(parts)) return [piece]
  const given: JsonObject[] = parts.filter(isObject)
  const isInside = (part: JsonObject) => {
    const inline = part.inlineData ?? part.inline_data
    return isObject(inline) && INSIDE.test(String(inline.mimeType ?? inline.mime_type))
  }
  const inside = given.filter(isInside)
  if (inside.length === parts.length) return [piece]
  const kept = inside.length > 0 ? { ...response, parts: inside } : response
  const beside = given.flatMap<JsonObject>((part) => (isInside(part) ? [] : (takenPart(part) ?? [])))
  const media = beside.map((block): Piece => ({ kind: 'medium', block, call: piece.call! }))
  return [{ ...piece, block: { ...piece.block, [key]: kept } }, ...media]
}

/** Whether a part is of bytes or a file that are not there. */
function isEmptyMedium(part: JsonObject): boolean {
  const inline = part.inlineData ?? part.inline_data
  const file = part.fileData ?? part.file_data
  if (isObject(inline)) return !inline.data
  return isObject(file) && !(file.fileUri ?? file.file_uri)
}

/** The part with an object where the API wants one, though the SDK's types do not. */
function withObject(
  part: JsonObject,
  keys: typeof CALL | typeof RESULT,
  name: 'args' | 'response',
): JsonObject {
  const key = keyOf<string>(part, keys)!
  const field = part[key] as JsonObject
  const given = field[name]
  if (isObject(given)) return part
  return { ...part, [key]: { ...field, [name]: Array.isArray(given) ? { output: given } : {} } }
}

/** A call of a tool of Google's, or its response: neither is sent without the other. */
function hostedPiece(part: JsonObject): Piece | undefined {
  const call = part.toolCall ?? part.tool_call
  const response = part.toolResponse ?? part.tool_response
  if (isObject(call) && typeof call.id === 'string')
    return { kind: 'hosted_call', block: part, call: call.id }
  if (isObject(response) && typeof response.id === 'string')
    return { kind: 'hosted_result', block: part, call: response.id }
  return undefined
}

function sideOf({ kind }: Piece, side: Run['side']): Run['side'] {
  if (kind === 'result') return 'user'
  return kind === 'content' ? side : 'model'
}

/** Whether a message has a part with several of the fields of which the API takes one. */
export function hasMixedParts(blob: JsonObject): boolean {
  const fields = ['text', 'inlineData', 'inline_data', 'fileData', 'file_data', ...CALL, ...RESULT]
  return (
    Array.isArray(blob.parts) &&
    blob.parts.some((part) => isObject(part) && fields.filter((key) => part[key] != null).length > 1)
  )
}
