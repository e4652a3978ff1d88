import { standardBase64 } from './attachments.js'
import type { CallIds } from './blob_reading.js'
import {
  asObject,
  InvalidMessage,
  isObject,
  type JsonObject,
  objectAt,
  optionalArrayAt,
  optionalObjectAt,
  optionalTextAt,
  pushAll,
  roleAt,
  textAt,
} from './blob_reading.js'
import { FOREIGN_SIGNATURE } from './gemini_out.js'
import { isEmptyFile, mediaTypeOf, parseDataUrl } from './media.js'
import {
  type AudioMeta,
  dataPart,
  type FileMeta,
  type ImageMeta,
  linkToCall,
  type NeutralMessage,
  type Part,
  part,
} from './parts.js'
import { writeMarkedJson } from './text_bytes.js'
import {
  callIn,
  idsOfCalls,
  isTurnOfResults,
  NONE,
  type ResultBlock,
  resultIn,
  textOfMcp,
} from './tool_blocks.js'

/**
 * Reads a Chat Completions message: one that goes into a request (`ChatCompletionMessageParam`) or one that
 * came out of a response (`choices[i].message`).
 *
 * | in the message | part |
 * |---|---|
 * | `content` text, text blocks | `text` |
 * | `refusal`, refusal blocks | `text` with `is_refusal` |
 * | `image_url`, `video_url`, `input_audio`, `file` blocks; `images` of a reply | `image`, `video`, `audio`, `file` |
 * | `audio` of a reply | `audio`; its text is the transcript |
 * | `tool_calls`, `function_call` | `tool-call`; a custom tool's free text is `{"input": …}` |
 * | a `tool` or `function` message | one `tool-result`; text blocks are joined by line feeds |
 * | a call or a result in a block of another format | `tool-call`, unless `tool_calls` has it; `tool-result` |
 * | any other block | `data` |
 */
export function readOpenAi(value: unknown, ids: CallIds): NeutralMessage {
  const blob = asObject(value, '')
  const role = roleAt(blob, ['system', 'developer', 'user', 'assistant', 'tool', 'function'])
  const name = optionalTextAt(blob, 'name', '') ?? null
  switch (role) {
    case 'assistant':
      return { role, provider_role: null, name, parts: readReply(blob, ids) }
    case 'tool':
    case 'function':
      return { role: 'user', provider_role: role, name: null, parts: readResult(blob, role, ids) }
    default: {
      const parts = readContent(blob, 'required', (block, at) => readGiven(block, at, ids))
      return { role: 'user', provider_role: role === 'user' ? null : role, name, parts }
    }
  }
}

function readReply(blob: JsonObject, ids: CallIds): Part[] {
  const known = idsOfCalls(blob)
  const parts = readContent(blob, 'optional', (block, at) => {
    const call = callIn(block, known)
    if (!call) return readGiven(block, at, ids)
    return [part('tool-call', null, { ...call, id: ids.ofCall(call.id, call.name), type: 'function' })]
  })
  const refusal = optionalTextAt(blob, 'refusal', '')
  if (refusal !== undefined) parts.push(part('text', refusal, { is_refusal: true }))
  // OpenRouter has the pictures that a model drew beside its text.
  if (Array.isArray(blob.images))
    pushAll(
      parts,
      blob.images.filter(isImage).map((image) => readImage(image.image_url, '')),
    )
  const audio = optionalObjectAt(blob, 'audio', '')
  if (audio !== undefined) parts.push(readSpokenReply(audio))
  const calls = optionalArrayAt(blob, 'tool_calls', '') ?? []
  const signatures = signaturesBeside(blob)
  for (const [i, call] of calls.entries()) parts.push(readCall(call, `/tool_calls/${i}`, ids, signatures))
  const call = optionalObjectAt(blob, 'function_call', '')
  if (call !== undefined) parts.push(readFunction(call, undefined, '/function_call', ids))
  return parts
}

function isImage(block: unknown): block is { image_url: { url: string } } {
  return isObject(block) && isObject(block.image_url) && typeof block.image_url.url === 'string'
}

function readSpokenReply(audio: JsonObject): Part {
  const meta: AudioMeta = { id: textAt(audio, 'id', '/audio') }
  const data = optionalTextAt(audio, 'data', '/audio')
  if (data !== undefined) meta.data = data
  return part('audio', optionalTextAt(audio, 'transcript', '/audio') ?? null, meta)
}

type Signatures = ReadonlyMap<unknown, string>

function readCall(value: unknown, at: string, ids: CallIds, signatures: Signatures): Part {
  const call = asObject(value, at)
  const type = optionalTextAt(call, 'type', at) || 'function'
  if (type === 'function') {
    const id = textAt(call, 'id', at)
    const signature = signatureOf(call) ?? signatures.get(id)
    return readFunction(objectAt(call, 'function', at), id, at, ids, signature)
  }
  if (type !== 'custom') {
    const block = callIn(call, NONE)
    if (!block) return dataPart(call, type)
    return part('tool-call', null, { ...block, id: ids.ofCall(block.id, block.name), type: 'function' })
  }
  const custom = objectAt(call, 'custom', at)
  const name = textAt(custom, 'name', `${at}/custom`)
  const input = optionalTextAt(custom, 'input', `${at}/custom`) ?? ''
  const id = ids.ofCall(textAt(call, 'id', at), name)
  return part('tool-call', null, { id, name, arguments: writeMarkedJson({ input }), type })
}

/** Gemini's signatures by the ids of their calls, where OpenRouter has them. */
function signaturesBeside({ reasoning_details }: JsonObject): Signatures {
  const details = Array.isArray(reasoning_details) ? reasoning_details.filter(isObject) : []
  return new Map(
    details.flatMap(({ type, format, id, data }) =>
      type === 'reasoning.encrypted' && String(format).startsWith('google') && typeof data === 'string'
        ? [[id, data]]
        : [],
    ),
  )
}

/** Gemini's signature of a call, where its service in OpenAI's format puts it, or LiteLLM does. */
function signatureOf(call: JsonObject): string | undefined {
  const { extra_content, provider_specific_fields, function: called, id } = call
  const google = isObject(extra_content) ? extra_content.google : undefined
  const beside = isObject(called) ? called.provider_specific_fields : undefined
  const given = [
    isObject(google) ? google.thought_signature : undefined,
    isObject(provider_specific_fields) ? provider_specific_fields.thought_signature : undefined,
    isObject(beside) ? beside.thought_signature : undefined,
    typeof id === 'string' ? idAndSignature(id).signature : undefined,
  ]
  const signature = given.find((one) => typeof one === 'string' && one !== '')
  return signature === FOREIGN_SIGNATURE ? undefined : (signature as string | undefined)
}

/** The id of a call, and the signature that LiteLLM has in it. */
export function idAndSignature(given: string): { id: string; signature?: string } {
  const at = given.indexOf('__thought__')
  return at < 0 ? { id: given } : { id: given.slice(0, at), signature: given.slice(at + 11) }
}

function readFunction(
  called: JsonObject,
  id: string | undefined,
  at: string,
  ids: CallIds,
  thought_signature?: string,
): Part {
  const place = id === undefined ? at : `${at}/function`
  const name = textAt(called, 'name', place)
  // A tool that needs no arguments is often called without any.
  const text = optionalTextAt(called, 'arguments', place) ?? '{}'
  const meta = { id: ids.ofCall(id, name), name, arguments: text, type: 'function' }
  return part('tool-call', null, { ...meta, ...(thought_signature !== undefined && { thought_signature }) })
}

function readResult(blob: JsonObject, role: 'tool' | 'function', ids: CallIds): Part[] {
  if (isTurnOfResults(blob)) return readContent(blob, 'required', (block, at) => readGiven(block, at, ids))
  const isFunction = role === 'function'
  const name = isFunction ? textAt(blob, 'name', '') : optionalTextAt(blob, 'name', '')
  const id = isFunction ? undefined : textAt(blob, 'tool_call_id', '')
  // A tool that returned nothing.
  const content = readContent(blob, isFunction || blob.content === null ? 'optional' : 'required', readTold)
  return resultParts(ids.ofResult(id, name), content)
}

/** A result: its texts as one, and what in it is no text, which names the call. */
function resultParts(
  call: ReturnType<CallIds['ofResult']>,
  content: readonly Part[],
  is_error = false,
): Part[] {
  const texts: string[] = []
  const rest: Part[] = []
  for (const piece of content) {
    if (piece.type === 'text') texts.push(piece.text)
    else rest.push(piece)
  }
  for (const piece of rest) linkToCall(piece, call.id)
  const meta = {
    tool_call_id: call.id,
    ...(call.name !== undefined && { name: call.name }),
    ...(is_error && { is_error }),
  }
  return [part('tool-result', texts.join('\n'), meta), ...rest]
}

/** A block of what somebody says: a result, where a program left it as one. */
function readGiven(block: unknown, at: string, ids: CallIds): Part[] {
  const result = resultIn(block)
  if (!result) return [readBlock(block, at)]
  return resultParts(ids.ofResult(result.id, undefined), contentIn(result, at), result.is_error)
}

/** A block of a result: what it says, where it is a result itself or of an MCP server. */
function readTold(block: unknown, at: string): Part[] {
  const result = resultIn(block)
  if (result) return contentIn(result, at)
  const text = isObject(block) ? textOfMcp(block) : undefined
  return [text === undefined ? readBlock(block, at) : part('text', text, null)]
}

function contentIn({ content }: ResultBlock, at: string): Part[] {
  const isList =
    Array.isArray(content) && content.every((block) => isObject(block) && typeof block.type === 'string')
  if (typeof content !== 'string' && !isList) return [part('text', writeMarkedJson(content), null)]
  return readContent({ content }, 'required', readTold, at)
}

type ReadBlock = (block: unknown, at: string) => Part[]

function readContent(
  blob: JsonObject,
  presence: 'required' | 'optional',
  read: ReadBlock,
  outer = '',
): Part[] {
  const content = blob.content
  if (typeof content === 'string') return [part('text', content, null)]
  if (Array.isArray(content)) return content.flatMap((block, i) => read(block, `${outer}/content/${i}`))
  if (presence === 'optional' && content == null) return []
  const missing = content === undefined ? 'is required and ' : ''
  throw new InvalidMessage('/content', `${missing}must be a string or an array of content parts`)
}

function readBlock(value: unknown, at: string): Part {
  const block = asObject(value, at)
  const type = textAt(block, 'type', at)
  switch (type) {
    case 'text':
      return part('text', textAt(block, 'text', at), null)
    case 'refusal':
      return part('text', textAt(block, 'refusal', at), { is_refusal: true })
    case 'video_url': {
      // Not of OpenAI itself, but of services that speak its format.
      const { url } = isObject(block.video_url) ? block.video_url : {}
      if (typeof url !== 'string') return dataPart(block, type)
      return part('video', null, parseDataUrl(url) ?? { url })
    }
    case 'image_url':
      // Some services and frameworks have the URL alone.
      return typeof block.image_url === 'string'
        ? readImage({ url: block.image_url }, at)
        : readImage(objectAt(block, 'image_url', at), `${at}/image_url`)
    case 'input_audio':
      // Mistral has the bytes or an address alone.
      if (typeof block.input_audio === 'string') return dataPart(block, type)
      return readAudio(objectAt(block, 'input_audio', at), `${at}/input_audio`)
    case 'file':
      // LangChain and AI SDK have the bytes or the address beside the type.
      return isObject(block.file) || [block.data, block.base64, block.url].every((one) => one == null)
        ? readFile(objectAt(block, type, at), `${at}/file`, type)
        : dataPart(block, type)
    default:
      return dataPart(block, type)
  }
}

function readImage(image: JsonObject, at: string): Part {
  const url = textAt(image, 'url', at)
  const meta: ImageMeta = parseDataUrl(url) ?? { url }
  const detail = optionalTextAt(image, 'detail', at)
  if (detail !== undefined) meta.detail = detail
  return part('image', null, meta)
}

export function readAudio(audio: JsonObject, at: string): Part {
  const data = standardBase64(textAt(audio, 'data', at))
  return part('audio', null, { data, format: textAt(audio, 'format', at) })
}

/** A file by its bytes, its id or, as the Responses API has it, its URL; `type` names one that has none of them. */
export function readFile(file: JsonObject, at: string, type: string): Part {
  const meta: FileMeta = {}
  for (const key of ['file_id', 'file_data', 'filename'] as const) {
    const field = optionalTextAt(file, key, at)
    if (field !== undefined) meta[key] = field
  }
  const url = optionalTextAt(file, 'file_url', at)
  if (url !== undefined) meta.url = url
  // OpenRouter has the address of a file in the place of its bytes.
  if (/^https?:/i.test(meta.file_data ?? '')) {
    const media_type = mediaTypeOf(meta.filename ?? '')
    Object.assign(meta, { url: meta.file_data, ...(media_type && { media_type }) })
    delete meta.file_data
  }
  return isEmptyFile(meta) ? dataPart(file, type) : part('file', null, meta, meta.filename ?? null)
}
