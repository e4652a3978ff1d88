import { InvalidMessage, isObject, type JsonObject } from './blob_reading.js'
import type { MessageFormat } from './formats.js'
import type { Part } from './parts.js'
import { markTexts, plainMark } from './text_bytes.js'

/**
 * A blob in place of its bytes. `encoding`: the place holds bare base64, where it might hold a `data:` URL instead.
 * `annals_inline`: it was sent as base64 after this text, and is shown so again; `encoding` then says if in the URL-safe
 * alphabet, with its padding or without.
 */
export interface BlobReference extends JsonObject {
  annals_blob: string
  media_type: string
  filename?: string
  encoding?: 'base64' | 'base64url' | 'base64url-unpadded'
  annals_inline?: string
}

/** A place in a message that holds bytes: as base64 (`data`), as a URL that may be a `data:` URL, or as either. */
export interface BytePlace {
  holder: JsonObject
  key: string
  holds: 'data' | 'url' | 'either'
  /** A signature or what a provider encrypted: it goes back to the character. */
  is_opaque?: true
  /** An address may be there as well, and mostly is. */
  is_address?: true
  /** As the message says it beside the bytes. */
  media_type: string | undefined
}

const SHA256 = /^[0-9a-f]{64}$/
const HASH_LENGTH = 64
const INLINE = /^(?:data:[ !#-+\--[\]-~]{0,240};base64,)?$/i
/** The name of the member, also where letters of it are written as escapes. */
const MENTION = /annals_blob|\\u00[5-7]/
/**
 * Stands in a text for the bytes of a blob, ahead of its hash. No stored text has this character, and JSON writes it as an
 * escape, so that whoever writes the text out can put the bytes there and nobody else can pretend to.
 */
const MARK = '\0'
/** Stands likewise for the text of a blob. */
const TEXT_MARK = `${MARK}t`
/** Stands for the bytes as they were sent, in the URL-safe alphabet: in the message's own format alone. */
const URL_SAFE_MARKS = { base64url: `${MARK}u`, 'base64url-unpadded': `${MARK}v` } as const
/** A string of this stands for how many bytes a blob has, as a number. */
const SIZE_MARK = `${MARK}n`

/** Whether a JSON text may refer to a blob: most do not, and need not be looked through. */
export function mayReferToBlobs(text: string): boolean {
  return MENTION.test(text)
}

const WITHOUT_BYTES = /\\u0000|"annals_inline"/

/** Whether bytes have to be put into a JSON text. One walk over it takes a quarter of two by `includes`. */
export function lacksBytes(text: string): boolean {
  return WITHOUT_BYTES.test(text)
}

/** All references in a value, with their places. @throws InvalidMessage naming the place of one that is malformed */
export function blobReferences(
  value: unknown,
  at = '',
): Array<{ reference: BlobReference; pointer: string }> {
  if (Array.isArray(value)) return value.flatMap((item, index) => blobReferences(item, `${at}/${index}`))
  if (!isObject(value)) return []
  const inside = Object.entries(value).flatMap(([key, member]) =>
    blobReferences(member, `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  )
  const isReference = Object.hasOwn(value, 'annals_blob')
  return isReference ? [{ reference: referenceAt(value, at), pointer: at }, ...inside] : inside
}

function referenceAt(value: JsonObject, at: string): BlobReference {
  const { annals_blob, media_type, filename, annals_inline } = value
  if (typeof annals_blob !== 'string' || !SHA256.test(annals_blob))
    throw new InvalidMessage(
      `${at}/annals_blob`,
      'must be the SHA-256 of a blob: 64 hexadecimal digits in lower case',
    )
  if (typeof media_type !== 'string' || media_type === '')
    throw new InvalidMessage(`${at}/media_type`, 'must be the media type of the blob')
  if (filename !== undefined && typeof filename !== 'string')
    throw new InvalidMessage(`${at}/filename`, 'must be a string')
  if (annals_inline !== undefined && (typeof annals_inline !== 'string' || !INLINE.test(annals_inline)))
    throw new InvalidMessage(
      `${at}/annals_inline`,
      'must be what stands ahead of base64 in a data: URL, or empty',
    )
  return value as BlobReference
}

/** Puts marks where a message holds references in place of bytes, so that it reads as if it held these. Changes `blob`. */
export function markBlobs(format: MessageFormat, blob: unknown): unknown {
  for (const { holder, key, holds } of bytePlaces(format, blob)) {
    const reference = holder[key]
    if (!isObject(reference) || typeof reference.annals_blob !== 'string') continue
    const { annals_inline, media_type, encoding } = reference
    const isUrlSafe = encoding === 'base64url' || encoding === 'base64url-unpadded'
    const mark = `${isUrlSafe ? URL_SAFE_MARKS[encoding] : MARK}${reference.annals_blob}`
    const isBare = holds === 'data' || (holds === 'either' && encoding === 'base64')
    holder[key] = `${annals_inline ?? (isBare ? '' : `data:${media_type};base64,`)}${mark}`
  }
  markTexts(blob)
  return blob
}

export function isMarked(text: string): boolean {
  return text.startsWith(MARK) && markedHash(text) !== undefined
}

/** The hash of the blob whose bytes stand in a text, by themselves or in a `data:` URL. */
export function markedHash(text: string): string | undefined {
  const ahead = text.slice(-HASH_LENGTH - 2, -HASH_LENGTH)
  if (!ahead.endsWith(MARK) && !/^\0[uv]$/.test(ahead)) return undefined
  const mark = text.slice(-HASH_LENGTH)
  return SHA256.test(mark) ? mark : undefined
}

/**
 * Base64, by itself or in a `data:` URL, as every provider reads it: in the standard alphabet, with its padding. What is
 * not base64 at all stays as it is. A mark of bytes becomes one of these bytes in the standard alphabet, without lines.
 */
export function standardBase64(given: string): string {
  const text = plainMark(given)
  const sha256 = markedHash(text)
  if (sha256 !== undefined) return text.replace(/\0[uv]?[0-9a-f]{64}$/, MARK + sha256)
  const from = text.slice(0, 5).toLowerCase() === 'data:' ? text.indexOf(',') + 1 : 0
  const data = text.slice(from)
  if (!/[-_]/.test(data) || !/^[\w-]+={0,2}$/.test(data)) return text
  const standard = data
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .replace(/={1,2}$/, '')
  return text.slice(0, from) + standard + '='.repeat((4 - (standard.length % 4)) % 4)
}

/** The placeholder for a blob's text. */
export function textMark(mark: string): string {
  return TEXT_MARK + mark.slice(MARK.length)
}

/** Fields of a part that are signatures, or encrypted. */
const NO_ASSETS: ReadonlySet<string> = new Set([
  'thought_signature',
  'signature',
  'encrypted_content',
  'data_type',
])

/**
 * Says of each part whose bytes are in a blob which one that is, as clients of this interface read it. They also expect where
 * the bytes are kept, which is nobody's business here: the key is the SHA-256, by which they can be downloaded. Changes the
 * parts.
 */
export function showAssets(parts: readonly Part[]): void {
  for (const part of parts) {
    for (const [name, value] of Object.entries(part.meta ?? {})) {
      if (NO_ASSETS.has(name) || part.type === 'redacted_thinking') continue
      const sha256 = typeof value === 'string' ? markedHash(value) : undefined
      if (sha256 === undefined) continue
      const { media_type } = part.meta as { media_type?: string }
      const mime = media_type ?? /^data:([^;,]+)/.exec(value as string)?.[1] ?? 'application/octet-stream'
      const size_b = `${SIZE_MARK}${sha256}`
      part.asset = { bucket: '', s3_key: sha256, etag: sha256, sha256, mime, size_b }
    }
  }
}

/** Parts with references where they have marks, and with their assets: what is answered without the bytes. Changes the parts. */
export function showReferences(parts: Part[], references: readonly BlobReference[]): Part[] {
  showAssets(parts)
  const byHash = new Map(references.map((reference) => [reference.annals_blob, reference]))
  for (const { meta } of parts) {
    const fields = (meta ?? {}) as JsonObject
    for (const [name, value] of Object.entries(fields)) {
      const reference = typeof value === 'string' ? byHash.get(markedHash(value) ?? '') : undefined
      if (reference) fields[name] = reference
    }
  }
  return parts
}

/** The places of a message that hold bytes, or references to them. */
export function bytePlaces(format: MessageFormat, blob: unknown): BytePlace[] {
  if (Array.isArray(blob)) return blob.flatMap((item) => bytePlaces(format, item))
  if (!isObject(blob) || isPlain(format, blob)) return []
  const own = PLACES[format](blob)
  if (format === 'acontext') return own
  const blocks = [blob.content, blob.parts, format === 'responses' ? blob.output : []].flatMap(objectsIn)
  const others = blocks.flatMap((block) => misplaced(format, block))
  return others.length === 0 ? own : distinct([...own, ...others])
}

/** Whether a message has no bytes because it has nothing in lists or objects, as most do. Items of Responses have some beside them. */
function isPlain(format: MessageFormat, blob: JsonObject): boolean {
  if (format === 'responses') return false
  for (const name in blob) if (typeof blob[name] === 'object') return false
  return true
}

function distinct(places: readonly BytePlace[]): BytePlace[] {
  const known = new Map<JsonObject, Set<string>>()
  return places.filter(({ holder, key }) => {
    const keys = known.get(holder) ?? new Set()
    known.set(holder, keys)
    return !keys.has(key) && keys.add(key)
  })
}

const PLACES: Readonly<Record<MessageFormat, (blob: JsonObject) => BytePlace[]>> = {
  openai: (blob) => [
    ...members(blob, 'audio', 'data'),
    ...[blob.content, blob.images].flatMap(objectsIn).flatMap(openAiPlaces),
    ...[blob, ...objectsIn(blob.tool_calls)].flatMap(googleSignature),
    ...objectsIn(blob.reasoning_details).flatMap((detail) => opaque(detail, 'data')),
  ],
  anthropic: (blob) => objectsIn(blob.content).flatMap(anthropicPlaces),
  gemini: (blob) => objectsIn(blob.parts).flatMap(geminiPlaces),
  acontext: (blob) => objectsIn(blob.parts).flatMap(acontextPlaces),
  responses: (blob) => [
    ...objectsIn(blob.content).flatMap(responsesPlaces),
    ...(Array.isArray(blob.output) ? blob.output : [blob.output]).filter(isObject).flatMap(responsesPlaces),
    ...objectsIn(blob.outputs).flatMap(responsesPlaces),
    ...(blob.type === 'image_generation_call' ? place(blob, 'result', 'data') : []),
    ...(blob.type === 'mcp_call' ? place(blob, 'output', 'either') : []),
    ...opaque(blob, 'encrypted_content'),
  ],
}

/** Types of blocks that programs leave in lists of another format, or of LangChain's, and that have bytes. */
const MEDIA: ReadonlySet<unknown> = new Set([
  'audio',
  'document',
  'file',
  'file-data',
  'image',
  'image-data',
  'image_url',
  'input_file',
  'input_image',
  'media',
  'video',
])

/** The places of a block of another format, and bytes at the address of a file. */
function misplaced(format: MessageFormat, block: JsonObject): BytePlace[] {
  if ((format === 'anthropic' || format === 'openai') && block.type === 'tool_result')
    return objectsIn(block.content).flatMap((one) => misplaced(format, one))
  if (block.type === 'tool-result' && isObject(block.output))
    return objectsIn(block.output.value).flatMap((one) => misplaced(format, one))
  if (format === 'gemini')
    for (const file of [block.fileData, block.file_data])
      if (isObject(file)) return ['fileUri', 'file_uri'].flatMap((key) => addressAt(file, key))
  if (!MEDIA.has(block.type)) return []
  const { source, data } = block
  const type = block.mime_type ?? block.media_type ?? block.mimeType ?? block.mediaType
  const holders = [block, block.image_url, block.file, source].filter(isObject)
  return [
    ...(type === undefined ? [] : ['data', 'base64'].flatMap((key) => place(block, key, 'data', type))),
    ...place(block, 'image', 'data', type),
    // AI SDK says of a file's data what they are.
    ...(isObject(data) && data.type === 'data' ? place(data, 'data', 'data', type) : []),
    ...(isObject(source) && source.type === 'base64' ? place(source, 'data', 'data', source.media_type) : []),
    ...holders.flatMap((holder) => ADDRESSES.flatMap((key) => addressAt(holder, key))),
  ]
}

const ADDRESSES = ['url', 'image_url', 'file_url', 'file_data'] as const

function addressAt(holder: JsonObject, key: string): BytePlace[] {
  return place(holder, key, 'url').map((one) => ({ ...one, is_address: true }))
}

/** Where Google's service in OpenAI's format has Gemini's signatures. */
function googleSignature({ extra_content }: JsonObject): BytePlace[] {
  const google = isObject(extra_content) ? extra_content.google : undefined
  return isObject(google) ? opaque(google, 'thought_signature') : []
}

function openAiPlaces(block: JsonObject): BytePlace[] {
  return [
    ...members(block, 'image_url', 'url', 'url'),
    ...members(block, 'video_url', 'url', 'url'),
    ...members(block, 'input_audio', 'data'),
    ...members(block, 'file', 'file_data', 'either'),
  ]
}

function anthropicPlaces(block: JsonObject): BytePlace[] {
  const { source } = block
  // A fetched page has its document in an object of its own.
  const content = isObject(block.content) ? [block.content] : objectsIn(block.content)
  const encrypted = [
    ...opaque(block, 'encrypted_content'),
    ...(block.type === 'redacted_thinking' ? opaque(block, 'data') : []),
  ]
  const inside = [...mcpPlaces(block), ...encrypted, ...content.flatMap(anthropicPlaces)]
  if (!isObject(source)) return inside
  if (source.type === 'content') return [...inside, ...objectsIn(source.content).flatMap(anthropicPlaces)]
  return source.type === 'base64' ? [...inside, ...place(source, 'data', 'data', source.media_type)] : inside
}

function geminiPlaces(part: JsonObject): BytePlace[] {
  // That of a picture is as long as the picture.
  const signatures = [...opaque(part, 'thoughtSignature'), ...opaque(part, 'thought_signature')]
  const bytes = ['inlineData', 'inline_data', 'functionResponse', 'function_response'].flatMap((name) => {
    const field = part[name]
    if (!isObject(field)) return []
    const type = field.mimeType ?? field.mime_type
    return [...place(field, 'data', 'data', type), ...objectsIn(field.parts).flatMap(geminiPlaces)]
  })
  return [...bytes, ...signatures]
}

function acontextPlaces({ type, meta }: JsonObject): BytePlace[] {
  if (!isObject(meta) || !['image', 'audio', 'video', 'file'].includes(String(type))) return []
  const { media_type } = meta
  return [
    ...(meta.type === 'text' ? [] : place(meta, 'data', 'data', media_type)),
    ...place(meta, 'url', 'url', media_type),
    ...place(meta, 'file_data', 'either', media_type),
    ...opaque(meta, 'thought_signature'),
  ]
}

function responsesPlaces(item: JsonObject): BytePlace[] {
  return [
    ...place(item, 'image_url', 'url'),
    ...place(item, 'file_data', 'either'),
    ...members(item, 'input_audio', 'data'),
    ...(item.type === 'image' ? place(item, 'url', 'url') : []),
    ...mcpPlaces(item),
  ]
}

/** Images, sound and resources that tools of MCP servers return. */
function mcpPlaces(block: JsonObject): BytePlace[] {
  const { resource, mimeType } = block
  return [
    ...(mimeType === undefined ? [] : place(block, 'data', 'data', mimeType)),
    ...(isObject(resource) ? place(resource, 'blob', 'data', resource.mimeType) : []),
  ]
}

function members(
  parent: JsonObject,
  name: string,
  key: string,
  holds: BytePlace['holds'] = 'data',
): BytePlace[] {
  const holder = parent[name]
  return isObject(holder) ? place(holder, key, holds) : []
}

function place(holder: JsonObject, key: string, holds: BytePlace['holds'], type?: unknown): BytePlace[] {
  if (typeof holder[key] !== 'string' && !isObject(holder[key])) return []
  return [{ holder, key, holds, media_type: typeof type === 'string' && type !== '' ? type : undefined }]
}

function opaque(holder: JsonObject, key: string): BytePlace[] {
  return place(holder, key, 'data').map((one) => ({ ...one, is_opaque: true }))
}

function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
