import { isObject, type JsonObject } from '../blob_reading.js'
import { argumentsAsObject, argumentsAsText } from '../tool_arguments.js'
import { textOfMcp } from '../tool_blocks.js'
import { NO_CONTENT } from '../turns.js'
import {
  blockOfOthers,
  isAnthropicsSignature,
  isEmptyContent,
  isOfOtherModel,
  isOfOthers,
  takenDocument,
  takenImage,
} from './anthropic_media.js'
import { fitId, isOwnToolId, ownToolId } from './fit_ids.js'
import {
  isBlank,
  NO_RESULT,
  type OmitBlock,
  only,
  type Piece,
  type PieceIds,
  type Run,
  type Shape,
  type SourcePiece,
  withoutNulls,
} from './pieces.js'

const fields = (...names: string[]): ReadonlySet<string> => new Set(names)

/** Members that blocks of a request may have: answers have more, which the API refuses ("Extra inputs are not permitted"). */
const ANTHROPIC_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  text: fields('type', 'text', 'cache_control', 'citations'),
  image: fields('type', 'source', 'cache_control', 'transformations'),
  document: fields('type', 'source', 'title', 'context', 'cache_control', 'citations'),
  search_result: fields('type', 'source', 'title', 'content', 'cache_control', 'citations'),
  thinking: fields('type', 'thinking', 'signature'),
  redacted_thinking: fields('type', 'data'),
  tool_use: fields('type', 'id', 'name', 'input', 'cache_control', 'caller', 'toolset_name'),
  tool_result: fields('type', 'tool_use_id', 'content', 'is_error', 'cache_control', 'toolset_name'),
}
const MARK_FIELDS = fields('type', 'ttl')
const SYSTEM_FIELDS = fields('role', 'content', 'output_config', 'clear_at')

export const ANTHROPIC_SHAPE: Shape = {
  joins_all: false,
  begins_with_user: true,
  says_beside_results: true,

  split(items, ids, omit) {
    const runs: Run[] = []
    for (const item of items) {
      if (item.role === 'system') {
        runs.push(systemRun(item))
        continue
      }
      const side = item.role === 'assistant' ? 'model' : 'user'
      for (const piece of piecesOf(ofAnthropicsOwn(item, omit), side, ids, omit)) {
        const speaker = sideOf(piece, side)
        const last = runs.at(-1)
        if (last?.side === speaker && last.head.role !== 'system') last.pieces.push(piece)
        else runs.push({ side: speaker, head: {}, pieces: [piece] })
      }
    }
    return runs
  },

  turn: (_, given) => {
    const pieces = endingWithCalls(given)
    pieces.push(...pieces.splice(-1).map(withoutTrailingSpace))
    const [{ source, piece }] = pieces as [(typeof pieces)[number]]
    const content =
      pieces.length === 1 && piece.is_bare ? piece.block.text : pieces.map(({ piece }) => piece.block)
    return [{ source, item: { role: 'assistant', content } }]
  },

  results: (results, is_waiting) => {
    const [first] = results
    const blocks = results.map(({ piece }) => piece.block)
    const content = is_waiting ? blocks.map(errorAsPlain) : errorsAsTexts(blocks)
    return first ? [{ source: first.source, item: { role: 'user', content } }] : []
  },

  said({ head, pieces }, source) {
    if (head.role === 'system') return [{ source, item: { ...head } }]
    const [first] = pieces
    const content =
      pieces.length === 1 && first?.is_bare ? first.block.text : pieces.map(({ block }) => block)
    return [{ source, item: { role: 'user', content } }]
  },

  renamed: ({ kind, block }, id, name) =>
    kind === 'call' ? { ...block, id, ...(name !== undefined && { name }) } : { ...block, tool_use_id: id },

  noResult: ({ call }) => ({ type: 'tool_result', tool_use_id: call, content: NO_RESULT, is_error: true }),

  textOf: ({ content }) =>
    typeof content === 'string'
      ? content
      : blocksOf(content)
          .map(({ text }) => text)
          .filter((text) => typeof text === 'string')
          .join('\n'),

  mediaOf: ({ content }) =>
    blocksOf(content)
      .filter(({ type }) => OF_USERS.has(String(type)))
      .map((block) => ({ kind: 'content', block })),

  text: (text) => ({
    side: 'user',
    head: {},
    pieces: [{ kind: 'content', block: { type: 'text', text } }],
  }),
}

/**
 * The API refuses a turn in which anything follows the calls; and one answer of its own in which a thought stands elsewhere
 * than where it was thought, such as between two calls.
 */
function endingWithCalls(given: readonly SourcePiece[]): SourcePiece[] {
  const isCall = ({ piece }: SourcePiece) => piece.kind === 'call'
  const steps: SourcePiece[][] = [[]]
  const last = given.findLastIndex(isCall)
  const is_one = isOneAnswer(given)
  for (const [nth, one] of given.entries()) {
    const begins = is_one && nth < last && one.piece.kind === 'thinking' && steps.at(-1)!.some(isCall)
    if (begins) steps.push([one])
    else steps.at(-1)!.push(one)
  }
  return steps.flatMap((step) => [...step.filter((one) => !isCall(one)), ...step.filter(isCall)])
}

function isOneAnswer([first, ...more]: readonly SourcePiece[]): boolean {
  const { source } = first!
  return more.every(
    (one) =>
      one.source === source || (source.answer_id !== undefined && one.source.answer_id === source.answer_id),
  )
}

/**
 * Content without thoughts and searches of another service that speaks this format: the API refuses what it did not sign
 * or encrypt itself, in results and in citations of them.
 */
function ofAnthropicsOwn(item: JsonObject, omit: OmitBlock): unknown {
  const { content } = item
  const is_foreign = isOfOtherModel(item)
  const searches = foreignSearches(blocksOf(content))
  const isForeign = (block: JsonObject) =>
    searches.has(block.id ?? block.tool_use_id) || (is_foreign && isThought(block))
  if (!blocksOf(content).some(isForeign)) return content
  return blocksOf(content).flatMap((block) => {
    if (isForeign(block)) {
      omit(String(block.type), block)
      return []
    }
    if (!Array.isArray(block.citations)) return block
    const citations = block.citations.filter(
      (one) => !(isObject(one) && one.type === 'web_search_result_location'),
    )
    return { ...block, citations: citations.length > 0 ? citations : null }
  })
}

function isThought({ type }: JsonObject): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

/** The ids of searches that another service made, or whose results lack what the API encrypted of them. */
function foreignSearches(blocks: readonly JsonObject[]): ReadonlySet<unknown> {
  const ids = blocks.flatMap(({ type, name, id, tool_use_id, content }) => {
    if (type === 'server_tool_use') return name === 'web_search' && !isOwnToolId(String(id)) ? id : []
    if (type !== 'web_search_tool_result') return []
    const isOwn = blocksOf(content).every(({ encrypted_content }) => !isBlank(encrypted_content))
    return isOwn && isOwnToolId(String(tool_use_id)) ? [] : tool_use_id
  })
  return new Set(ids.filter((id) => typeof id === 'string'))
}

/** Content that the API refuses in a turn of the assistant. */
const OF_USERS = new Set(['image', 'document', 'search_result', 'container_upload'])

/** A turn that a list ends with is one that the model goes on with, and the API refuses white space before that. */
function withoutTrailingSpace({ source, piece }: SourcePiece): SourcePiece {
  const { text } = piece.block
  if (piece.kind !== 'content' || typeof text !== 'string') return { source, piece }
  return { source, piece: { ...piece, block: { ...piece.block, text: text.trimEnd() } } }
}

function blocksOf(content: unknown): JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : []
}

/** Instructions in the middle of a conversation, which newer models take: with what is not blank of them. */
function systemRun(item: JsonObject): Run {
  const head = only(item, SYSTEM_FIELDS)
  if (Array.isArray(head.content))
    head.content = head.content.flatMap((block) => cleaned(block, () => {}) ?? [])
  const is_empty = head.content === undefined || isBlank(head.content)
  const has_blocks = Array.isArray(head.content) && head.content.length > 0
  const is_sent = !is_empty || has_blocks || head.output_config !== undefined
  if (is_empty && !has_blocks) delete head.content
  return { side: 'user', head, pieces: is_sent ? [{ kind: 'content', block: {} }] : [] }
}

function piecesOf(
  content: unknown,
  side: Run['side'],
  { calls, results }: PieceIds,
  omit: OmitBlock,
): Piece[] {
  if (typeof content === 'string')
    return isBlank(content)
      ? []
      : [{ kind: 'content', block: { type: 'text', text: content }, is_bare: true }]
  const pieces: Piece[] = []
  for (const given of Array.isArray(content) ? content : []) {
    if (!isObject(given)) continue
    const call = given.type === 'tool_use' ? calls.pop() : undefined
    const result = given.type === 'tool_result' ? results.pop() : undefined
    const block = side === 'model' && OF_USERS.has(String(given.type)) ? undefined : cleaned(given, omit)
    if (block === undefined) {
      if (given.type !== 'text') omit(String(given.type), given)
      continue
    }
    pieces.push(pieceOf(block, call, result))
  }
  return pieces
}

function pieceOf(
  block: JsonObject,
  call: PieceIds['calls'][number] | undefined,
  result: PieceIds['results'][number] | undefined,
): Piece {
  if (call) return { kind: 'call', block, call: call.id, name: call.name }
  if (result)
    return { kind: 'result', block, call: result.id, ...(result.name !== undefined && { name: result.name }) }
  const type = String(block.type)
  if (type === 'thinking' || type === 'redacted_thinking') return { kind: 'thinking', block }
  if (type === 'server_tool_use' || type === 'mcp_tool_use')
    return { kind: 'hosted_call', block, call: String(block.id) }
  if (type.endsWith('_tool_result')) return { kind: 'hosted_result', block, call: String(block.tool_use_id) }
  return { kind: 'content', block }
}

function sideOf({ kind }: Piece, side: Run['side']): Run['side'] {
  if (kind === 'result') return 'user'
  return kind === 'content' ? side : 'model'
}

/** A block as a request may have it; undefined where it must have none: blank text, and thinking without a signature. */
function cleaned(block: unknown, omit: OmitBlock): JsonObject | undefined {
  if (!isObject(block)) return undefined
  if (isOfOthers(block)) return blockOfOthers(block)
  const known = ANTHROPIC_FIELDS[String(block.type)]
  const kept = withOwnMark(known ? only(block, known) : ownBlock(block))
  switch (block.type) {
    case 'text':
      return isBlank(kept.text) ? undefined : withRequestCitations(kept)
    case 'thinking':
      return isAnthropicsSignature(kept.signature) ? { thinking: '', ...kept } : undefined
    case 'redacted_thinking':
      return isAnthropicsSignature(kept.data) ? kept : undefined
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return isObject(block.input)
        ? withOwnCaller(kept)
        : { ...withOwnCaller(kept), input: argumentsAsObject(argumentsAsText(block.input)) }
    case 'tool_result':
      return cleanedResult(kept, omit)
    case 'mcp_tool_result':
      return Array.isArray(kept.content)
        ? { ...kept, content: kept.content.flatMap((inner) => cleaned(inner, omit) ?? []) }
        : kept
    case 'image':
      return takenImage(kept)
    case 'document':
      return takenDocument(withInside(kept, 'source', omit))
    case 'search_result':
      return searchResult(withInside(kept, undefined, omit))
    default:
      return kept
  }
}

/** Citations of an answer name the file of the document, which requests must not. */
function withRequestCitations(block: JsonObject): JsonObject {
  if (!Array.isArray(block.citations)) return block
  const citations = block.citations.filter(isObject).map(({ file_id: _, ...citation }) => citation)
  return { ...block, citations }
}

/** A mark of the cache as the API takes it: programs and other services put more into it. */
function withOwnMark(block: JsonObject): JsonObject {
  const mark = block.cache_control
  if (mark === undefined) return block
  const { cache_control: _, ...rest } = block
  return isObject(mark) && mark.type === 'ephemeral'
    ? { ...block, cache_control: only(mark, MARK_FIELDS) }
    : rest
}

/** A document or a search result made of blocks, with those that the API takes. */
function withInside(block: JsonObject, name: 'source' | undefined, omit: OmitBlock): JsonObject {
  const holder = name ? block[name] : block
  if (!isObject(holder) || !Array.isArray(holder.content)) return block
  const inside = { ...holder, content: holder.content.flatMap((inner) => cleaned(inner, omit) ?? []) }
  return name ? { ...block, [name]: inside } : inside
}

function searchResult(block: JsonObject): JsonObject | undefined {
  return isEmptyContent(block) ? undefined : block
}

/** A block of a tool of Anthropic's own, or of a kind that is not known, with the ids that the API takes. */
function ownBlock(block: JsonObject): JsonObject {
  const { type, id, tool_use_id } = block
  const isMcp = String(type).startsWith('mcp_')
  const isResult = String(type).endsWith('_tool_result')
  const kept: JsonObject = type === 'compaction' ? block : withoutNulls(block)
  if ((type === 'server_tool_use' || type === 'mcp_tool_use') && typeof id === 'string')
    return { ...kept, id: isMcp ? fitId(id, 'anthropic') : ownToolId(id) }
  if (isResult && typeof tool_use_id === 'string')
    return { ...kept, tool_use_id: isMcp ? fitId(tool_use_id, 'anthropic') : ownToolId(tool_use_id) }
  return kept
}

/** The call with the id of the one that it was made by as that one is sent. */
function withOwnCaller(block: JsonObject): JsonObject {
  const { caller } = block
  if (!isObject(caller) || typeof caller.tool_id !== 'string') return block
  return { ...block, caller: { ...caller, tool_id: ownToolId(caller.tool_id) } }
}

/** What tools of MCP servers return, and the API refuses in a result. */
const OF_MCP = new Set(['resource', 'resource_link', 'audio'])

/** A block of MCP's as a text; undefined for bytes. */
function mcpText(block: JsonObject): JsonObject | undefined {
  const text = textOfMcp(block)
  return isBlank(text) ? undefined : { type: 'text', text }
}

/** A block of a result; none where the API would refuse it, of which `omit` hears if it says something. */
function cleanedInside(block: unknown, omit: OmitBlock): JsonObject[] {
  const kept = isObject(block) && OF_MCP.has(String(block.type)) ? mcpText(block) : cleaned(block, omit)
  if (kept) return [kept]
  if (isObject(block) && OF_MCP.has(String(block.type))) omit(String(block.type), block)
  if (isObject(block) && /^(image|document)$/.test(String(block.type))) omit(String(block.type), block)
  return []
}

/** An error with a picture as a result that says so: where a tool of the API's own waits, it takes nothing but results. */
function errorAsPlain(block: JsonObject): JsonObject {
  if (block.is_error !== true || blocksOf(block.content).every(({ type }) => type === 'text')) return block
  const { is_error: _, ...result } = block
  return { ...result, content: [{ type: 'text', text: 'Error:' }, ...blocksOf(block.content)] }
}

/** An error may have only texts: the API takes its pictures and documents after the results. */
function errorsAsTexts(blocks: JsonObject[]): JsonObject[] {
  const beside: JsonObject[] = []
  const results = blocks.flatMap<JsonObject>((block) => {
    if (block.type !== 'tool_result') return []
    if (block.is_error !== true || !Array.isArray(block.content)) return block
    const texts = blocksOf(block.content).filter(({ type }) => type === 'text')
    beside.push(...blocksOf(block.content).filter(({ type }) => OF_USERS.has(String(type))))
    return { ...block, content: texts.length > 0 ? texts : NO_CONTENT }
  })
  return [...results, ...beside, ...blocks.filter(({ type }) => type !== 'tool_result')]
}

function cleanedResult(block: JsonObject, omit: OmitBlock): JsonObject {
  const content = Array.isArray(block.content)
    ? block.content.flatMap((inner) => cleanedInside(inner, omit))
    : block.content
  const is_empty = Array.isArray(content) ? content.length === 0 : isBlank(content)
  // The API takes an empty result, but no empty error.
  if (block.is_error === true && is_empty) return { ...block, content: NO_CONTENT }
  return content === undefined ? block : { ...block, content }
}
