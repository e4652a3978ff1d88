import { isMarked, textMark } from '../attachments.js'
import { textOfBase64 } from '../base64.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import {
  audioFormat,
  dataUrl,
  imageType,
  isRefusedImage,
  isTextType,
  isUnnamedFile,
  nameOfBytes,
  parseDataUrl,
} from '../media.js'
import { idAndSignature } from '../openai_in.js'
import { isLongInput, sentArguments } from '../tool_arguments.js'
import { cutText } from './fit_ids.js'
import { isForeign, isForeignImage, saidByForeign } from './foreign_blocks.js'
import {
  cutResult,
  isBlank,
  isEmptyMedium,
  NO_RESULT,
  type OmitBlock,
  only,
  type Piece,
  type PieceIds,
  type Run,
  type Shape,
  type SourcePiece,
} from './pieces.js'

/** Parts that the content of a reply may have. */
const OF_REPLIES = new Set(['text', 'refusal'])
/** In which services give a model's thoughts. */
export const REASONING_FIELDS = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'thinking_blocks',
] as const

const fields = (...names: string[]): ReadonlySet<string> => new Set(names)

/** Fields of services that speak this format: marks of a cache, and signatures of Gemini's, at Google and at LiteLLM. */
const OF_SERVICES = ['cache_control', 'extra_content', 'provider_specific_fields'] as const
/**
 * Fields that a message of a request may have, beside its content and its calls: answers have more, and so have programs,
 * which the API refuses ("Unknown parameter"). DeepSeek, Mistral and Moonshot go on with a reply that is a prefix.
 */
const HEAD_FIELDS = fields(
  ...['role', 'name', 'refusal', 'audio', 'images', 'prefix', 'partial'],
  ...OF_SERVICES,
  ...REASONING_FIELDS,
)
const RESULT_FIELDS = fields(...OF_SERVICES)
const CALL_FIELDS = fields('id', 'function', 'custom', ...OF_SERVICES)
const FUNCTION_FIELDS = fields('name', 'arguments', 'provider_specific_fields')
const CUSTOM_FIELDS = fields('name', 'input')
/** What a block has within the member that is named as its type. */
const BLOCK_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  text: fields(),
  refusal: fields(),
  image_url: fields('url', 'detail'),
  input_audio: fields('data', 'format'),
  file: fields('file_data', 'file_id', 'filename'),
}

export const OPENAI_SHAPE: Shape = {
  joins_all: false,
  begins_with_user: false,
  says_beside_results: false,
  calls_max: 128,
  split: (items, ids, omit) => items.flatMap((item) => runOf(item, ids, omit)),

  turn: (head, pieces) => {
    const [{ source }] = pieces as [SourcePiece]
    const texts = pieces.filter(({ piece }) => piece.kind === 'content')
    const calls = pieces.flatMap(({ piece }) => (piece.kind === 'call' ? [piece.block] : []))
    const { content: _, tool_calls: __, role: ___, ...rest } = head
    const item: JsonObject = {
      role: 'assistant',
      content: contentOf(texts.map(({ piece }) => piece)),
      ...rest,
    }
    if (calls.length > 0) item.tool_calls = calls
    if (Array.isArray(rest.reasoning_details))
      item.reasoning_details = withSentIds(rest.reasoning_details, pieces)
    return [{ source, item }]
  },

  results: (results) => results.map(({ piece, source }) => ({ source, item: piece.block })),

  said({ head, pieces }, source) {
    return [{ source, item: { ...head, content: contentOf(pieces) } }]
  },

  renamed({ kind, block }, id, name) {
    if (kind === 'result')
      return { ...block, ...('name' in block && name !== undefined && { name }), tool_call_id: id }
    if (name === undefined) return { ...block, id }
    return isObject(block.custom)
      ? { ...block, id, custom: { ...block.custom, name } }
      : { ...block, id, function: { ...(block.function as JsonObject), name } }
  },

  noResult: ({ call }) => ({ role: 'tool', tool_call_id: call, content: NO_RESULT }),

  textOf: ({ content }) =>
    typeof content === 'string'
      ? content
      : (Array.isArray(content) ? content : [])
          .flatMap((block) => (isObject(block) && typeof block.text === 'string' ? [block.text] : []))
          .join('\n'),

  mediaOf: () => [],

  text: (text) => ({
    side: 'user',
    head: { role: 'user' },
    pieces: [{ kind: 'content', block: { type: 'text', text }, is_bare: true }],
  }),
}

/** OpenRouter names in a detail the call that it signs. */
function withSentIds(details: readonly unknown[], pieces: readonly SourcePiece[]): unknown[] {
  const ids = new Map(pieces.map(({ piece: { call, block } }) => [call ?? '', block.id]))
  return details.map((detail) => {
    const id = isObject(detail) ? ids.get(String(detail.id)) : undefined
    return id === undefined ? detail : { ...(detail as JsonObject), id }
  })
}

/** One text that was a string, or that stands alone in a reply, is a string again. */
function contentOf(pieces: Piece[]): unknown {
  const said = pieces.filter(({ block }) => block.type !== undefined)
  const [first] = said
  if (first === undefined) return null
  if (said.length === 1) return first.is_bare ? first.block.text : [first.block]
  // The API takes a refusal alone.
  return said.map(({ block }) => (block.type === 'refusal' ? { type: 'text', text: block.refusal } : block))
}

function runOf(item: JsonObject, { calls, results }: PieceIds, omit: OmitBlock): Run[] {
  if (item.role === 'tool' || item.role === 'function') {
    const result = results.pop()
    return result ? resultRuns(item, result, omit) : []
  }
  const head = withoutEmptyLists(only(item, HEAD_FIELDS))
  if (typeof head.name === 'string') head.name = cutText(head.name.replace(/[\s<|\\/>]/g, '_'), 64)
  if (head.name === '') delete head.name
  const pieces = contentPieces(item.content, omit).filter(({ block }) => {
    const isTaken = item.role === 'assistant' ? OF_REPLIES.has(String(block.type)) : !isEmptyMedium(block)
    if (!isTaken) omit(String(block.type), block)
    return isTaken
  })
  if (item.role !== 'assistant') {
    // Only users say what is no text.
    if (pieces.some(({ block }) => block.type !== 'text')) head.role = 'user'
    return [{ side: 'user', head, pieces }]
  }
  if (isObject(head.audio)) {
    const { id, transcript } = head.audio
    // OpenAI forgets a sound after an hour, and then refuses its id.
    if (isBlank(transcript)) head.audio = { id }
    else {
      delete head.audio
      pieces.push({ kind: 'content', block: { type: 'text', text: transcript }, is_bare: true })
    }
  }
  for (const call of Array.isArray(item.tool_calls) ? item.tool_calls : []) {
    if (!isObject(call)) continue
    const isKnown = !call.type || call.type === 'function' || call.type === 'custom'
    const ids = isKnown ? calls.pop() : undefined
    if (ids) pieces.push({ kind: 'call', block: callBlock(call, ids.id, omit), call: ids.id, name: ids.name })
    else omit(String(call.type), call)
  }
  const ids = isObject(item.function_call) ? calls.pop() : undefined
  if (ids) {
    const block = callBlock({ function: item.function_call }, ids.id, omit)
    pieces.push({ kind: 'call', block, call: ids.id, name: ids.name })
  }
  // A reply may be nothing but a refusal or a sound.
  if (pieces.length === 0 && (head.refusal || head.audio))
    pieces.push({ kind: 'content', block: {}, is_bare: true })
  return [{ side: 'model', head, pieces }]
}

/** A result, and what is not text in it as something that the user says: a result takes nothing else. */
function resultRuns(item: JsonObject, { id, name }: PieceIds['results'][number], omit: OmitBlock): Run[] {
  const { role, name: own, content } = item
  const block: JsonObject = { role: 'tool', ...only(item, RESULT_FIELDS) }
  const pieces = Array.isArray(content) ? contentPieces(content, omit) : []
  const texts = pieces.flatMap(({ block }) => (block.type === 'text' ? [block] : []))
  block.content = Array.isArray(content) ? (texts.length > 0 ? texts : '') : cutResult(String(content ?? ''))
  if (role === 'tool' && typeof own === 'string' && own !== '') block.name = own
  block.tool_call_id = id
  const result: Piece = { kind: 'result', block, call: id, ...(name !== undefined && { name }) }
  const media = pieces.filter(({ block }) => block.type !== 'text')
  const runs: Run[] = [{ side: 'user', head: {}, pieces: [result] }]
  if (media.length > 0) runs.push({ side: 'user', head: { role: 'user' }, pieces: media })
  return runs
}

/** A call with its type, its id and the text of an object as arguments. */
function callBlock(call: JsonObject, id: string, omit: OmitBlock): JsonObject {
  const rest = withSignature(only(call, CALL_FIELDS))
  if (isObject(rest.custom)) {
    const custom = only(rest.custom, CUSTOM_FIELDS)
    if (!isLongInput(custom.input)) return { ...rest, id, type: 'custom', custom }
    omit('input', { text: custom.input })
    return { ...rest, id, type: 'custom', custom: { ...custom, input: '' } }
  }
  const called = isObject(rest.function) ? rest.function : {}
  const text = sentArguments(called.arguments)
  if (text === undefined) omit('arguments', { text: called.arguments })
  const asked = { ...only(called, FUNCTION_FIELDS), arguments: text ?? '{}' }
  return { ...rest, id, type: 'function', function: asked }
}

/** Of the call's id, the signature of Gemini's that LiteLLM put there: such an id would be cut in it. */
function withSignature(call: JsonObject): JsonObject {
  const { signature } = idAndSignature(String(call.id))
  if (signature === undefined || call.provider_specific_fields !== undefined) return call
  return { ...call, provider_specific_fields: { thought_signature: signature } }
}

function contentPieces(content: unknown, omit: OmitBlock): Piece[] {
  if (typeof content === 'string')
    return isBlank(content)
      ? []
      : [{ kind: 'content', block: { type: 'text', text: content }, is_bare: true }]
  return (Array.isArray(content) ? content : [])
    .filter(isObject)
    .filter(({ type, text }) => type !== 'text' || !isBlank(text))
    .flatMap((block) => {
      const isOwn = !isForeign(block, OF_OPENAI_AND_LIKE) && (block.type !== 'file' || isObject(block.file))
      const own = isOwn ? block : ofForeign(block)
      const taken = own && takenBlock(said(own))
      if (taken === undefined) omit(String(block.type).replace('input_', ''), block)
      return taken ? { kind: 'content', block: taken } : []
    })
}

/** A block as the API takes it: of files only PDFs, of sounds only wav and mp3. A file of a text is what it says, one of a picture a picture. */
function takenBlock(block: JsonObject): JsonObject | undefined {
  if (block.type === 'input_audio') return takenSound(block)
  const { file, image_url } = block
  if (block.type === 'image_url' && typeof image_url === 'string')
    return takenBlock({ ...block, image_url: { url: image_url } })
  if (block.type === 'image_url' && isObject(image_url) && isRefusedImage(image_url.url)) return undefined
  if (block.type !== 'file' || !isObject(file)) return block
  const { file_data, filename } = file
  const bytes = typeof file_data === 'string' ? parseDataUrl(file_data) : null
  if (bytes === null || isPdf(bytes.media_type, filename)) return withFileName(asPdf(block, file))
  const media_type = imageType(bytes.media_type)
  if (media_type) return { type: 'image_url', image_url: { url: dataUrl({ ...bytes, media_type }) } }
  if (!isTextType(bytes.media_type)) return undefined
  const text = isMarked(bytes.data) ? textMark(bytes.data) : textOfBase64(bytes.data)
  if (isBlank(text)) return undefined
  return { type: 'text', text: isBlank(filename) ? text : `${filename}:\n${text}` }
}

const UNTYPED = 'application/octet-stream'

function isPdf(media_type: string, filename: unknown): boolean {
  return (
    /^application\/pdf\b/i.test(media_type) || (media_type === UNTYPED && /\.pdf$/i.test(String(filename)))
  )
}

/** The file without an id beside its bytes, of which the API takes one. */
function asPdf(block: JsonObject, { file_id, ...file }: JsonObject): JsonObject {
  const { file_data, filename: _, ...rest } = file
  if (typeof file_data !== 'string')
    return { ...block, file: { ...rest, ...(file_id != null && { file_id }) } }
  return {
    ...block,
    file: { ...file, file_data: file_data.replace(`data:${UNTYPED}`, 'data:application/pdf') },
  }
}

function takenSound(block: JsonObject): JsonObject | undefined {
  const { input_audio } = block
  if (!isObject(input_audio)) return block
  const format = audioFormat(`audio/${String(input_audio.format).toLowerCase()}`)
  return format === 'wav' || format === 'mp3'
    ? { ...block, input_audio: { ...input_audio, format } }
    : undefined
}

/** Blocks that are OpenAI's own, or that services take which speak this format. */
const OF_OPENAI_AND_LIKE = new Set([...Object.keys(BLOCK_FIELDS), 'video_url', 'document_url'])

/** What a block of another format says, as OpenAI takes it. */
function ofForeign(block: JsonObject): JsonObject | undefined {
  const told = saidByForeign(block)
  if (!told || 'text' in told) return told && { type: 'text', ...told }
  const { url } = told
  if (isForeignImage(block, url)) return { type: 'image_url', image_url: { url } }
  return /^data:/i.test(url) ? { type: 'file', file: { file_data: url } } : undefined
}

function said(block: JsonObject): JsonObject {
  const type = String(block.type)
  const known = BLOCK_FIELDS[type]
  if (!known) return block
  const kept = only(block, fields('type', type, 'cache_control', 'prompt_cache_breakpoint'))
  return isObject(kept[type]) ? { ...kept, [type]: only(kept[type], known) } : kept
}

/** SDKs write an empty list for what is not there. */
function withoutEmptyLists(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  )
}

/** A file of bytes has to have a name. */
function withFileName(block: JsonObject): JsonObject {
  const { file } = block
  if (block.type !== 'file' || !isObject(file) || !isUnnamedFile(file)) return block
  return { ...block, file: { ...file, filename: nameOfBytes(file.file_data) } }
}
