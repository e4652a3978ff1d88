import { type BytePlace, bytePlaces } from '../attachments.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { dataUrl, imageType, isAddress, mediaTypeOf, parseDataUrl } from '../media.js'
import { typeOfBase64 } from '../media_facts.js'
import { referenceIn } from '../text_bytes.js'

const TYPE_FIELDS = ['media_type', 'mimeType', 'mime_type', 'mediaType'] as const
const DATA_URL = /^data:([^;,]*)/i
const IMAGE = /^image(\/|$)/i
/** Blocks of AI SDK that have bytes in `data` or `image`, whose type may be missing, or an address there. */
const OF_AI_SDK = /^(data|file|image|media)(-data)?$/

/**
 * Makes of bytes what their place is for, and says of each image what it is: providers refuse anything else, and with it
 * every later request. What is no such bytes, such as a page of HTML that is called an image, is taken out. Changes the
 * blob, in which references still stand for bytes that are elsewhere.
 */
export function writeTrueBytes(format: MessageFormat, blob: unknown): void {
  for (const place of bytePlaces(format, blob)) {
    if (place.is_opaque || place.holder.type === 'image_generation_call' || isAddressAt(place)) continue
    const { holder, key } = place
    holder[key] = referenceIn(holder[key]) ?? holder[key]
    writePlainBytes(place)
    const is = typeIn(holder[key])
    const said = saidType(holder, holder[key])
    if (is === undefined) continue
    if (said === undefined && format === 'gemini' && key === 'data') holder.mimeType = is
    if (said === undefined && OF_AI_SDK.test(String(holder.type))) holder.mediaType = is
    if (isOther(said, is)) holder[key] = ''
    else if (IMAGE.test(is)) writeType(holder, key, is)
  }
}

/** Whether an address stands where bytes might. */
export function isAddressAt({ is_address, holder, key }: BytePlace): boolean {
  const at = holder[key]
  return is_address === true && typeof at === 'string' && !DATA_URL.test(at)
}

/** Programs write a `data:` URL where base64 belongs, base64 where a URL does, lines, paths, and names of files. */
function writePlainBytes({ holder, key, holds }: BytePlace): void {
  const given = withPlainHead(holder[key])
  holder[key] = given
  if (key === 'file_data') {
    holder[key] = isObject(given) ? linkedFile(holder, given) : fileUrl(holder, String(given))
    return
  }
  if (typeof given !== 'string' || given === '' || holds === 'either') return
  if (holds === 'url') holder[key] = plainUrl(given)
  else if (holder.type === 'base64' && /^https?:/i.test(given)) {
    holder.type = 'url'
    holder.url = given
    delete holder.data
    delete holder.media_type
  } else if (!isAddressOfBlock(holder, given)) holder[key] = plainBase64(given)
}

function isAddressOfBlock({ type }: JsonObject, given: string): boolean {
  return OF_AI_SDK.test(String(type)) && /^https?:/i.test(given)
}

/** A `data:` URL without parameters, such as a `charset` or a `name`, that no provider reads. */
function withPlainHead(given: unknown): unknown {
  if (typeof given === 'string') return given.replace(PARAMETERS, '$1;base64,')
  if (!isObject(given) || typeof given.annals_inline !== 'string') return given
  return { ...given, annals_inline: given.annals_inline.replace(PARAMETERS, '$1;base64,') }
}

const PARAMETERS = /^(data:[^;,]{0,128});[^,]{1,512};\s*base64\s*,/i

const NO_BASE64 = /[^A-Za-z0-9+/_=-]/

/** Base64 by itself; nothing where a text is something else. */
function plainBase64(text: string): string {
  const data = withoutSpace(text.slice(endOfHead(text)))
  return NO_BASE64.test(data) ? '' : data
}

function endOfHead(text: string): number {
  return DATA_URL.test(text) ? text.indexOf(',') + 1 : 0
}

function withoutSpace(text: string): string {
  return /\s/.test(text) ? text.replace(/\s+/g, '') : text
}

/** A URL that a provider can read; nothing for a place on the sender's machine. */
function plainUrl(text: string): string {
  if (DATA_URL.test(text)) {
    const bytes = IN_BASE64.test(text) ? undefined : parseDataUrl(text)
    if (bytes !== undefined) return bytes === null ? '' : dataUrl(bytes)
    return withoutSpace(UNTYPED.test(text) ? typedUrl(text) : text)
  }
  if (isAddress(text)) return text
  const type = imageType(typeOfBase64(text) ?? '')
  return type ? `data:${type};base64,${withoutSpace(text)}` : ''
}

const IN_BASE64 = /^data:[^,]*;\s*base64\s*,/i
const UNTYPED = /^data:(application\/octet-stream)?;base64,/i

/** The URL with the type of the image in it. */
function typedUrl(text: string): string {
  const data = text.slice(endOfHead(text))
  const type = imageType(typeOfBase64(data) ?? '')
  return type ? `data:${type};base64,${data}` : text
}

/** OpenAI wants a `data:` URL of a file, though its type may be in the name alone. */
function fileUrl(holder: JsonObject, text: string): string {
  if (text === '' || DATA_URL.test(text)) return withoutSpace(text)
  const data = withoutSpace(text)
  if (NO_BASE64.test(data)) return text
  return `data:${typeOfBase64(data) ?? typeByName(holder)};base64,${data}`
}

function linkedFile(holder: JsonObject, reference: JsonObject): JsonObject {
  if (reference.annals_inline !== '') return reference
  const { media_type } = reference
  const type = media_type === 'application/octet-stream' ? typeByName(holder) : media_type
  return { ...reference, annals_inline: `data:${type};base64,` }
}

function typeByName({ filename }: JsonObject): string {
  return mediaTypeOf(typeof filename === 'string' ? filename : '') ?? 'application/octet-stream'
}

/** Bytes that were taken out have the type that they are, where they are known. */
function typeIn(bytes: unknown): string | undefined {
  if (typeof bytes === 'string') {
    const from = endOfHead(bytes)
    return typeOfBase64(bytes.slice(from, from + 32))
  }
  const type = isObject(bytes) ? bytes.media_type : undefined
  return typeof type === 'string' && (IMAGE.test(type) || NO_IMAGES.has(type)) ? type : undefined
}

const NO_IMAGES = new Set(['text/html', 'application/json', 'text/plain', 'application/pdf'])

function saidType(holder: JsonObject, bytes: unknown): string | undefined {
  for (const field of TYPE_FIELDS) if (typeof holder[field] === 'string') return holder[field]
  const url = isObject(bytes) ? bytes.annals_inline : bytes
  return typeof url === 'string' ? DATA_URL.exec(url)?.[1] : undefined
}

/** Whether bytes that are said to be an image or a PDF are neither. */
function isOther(said: string | undefined, is: string): boolean {
  if (said === undefined) return false
  return IMAGE.test(said) ? !IMAGE.test(is) : said.toLowerCase() === 'application/pdf' && said !== is
}

function writeType(holder: JsonObject, key: string, type: string): void {
  for (const field of TYPE_FIELDS) if (isOtherImage(holder[field], type)) holder[field] = type
  const bytes = holder[key]
  if (typeof bytes === 'string') holder[key] = withType(bytes, type)
  else if (isObject(bytes) && typeof bytes.annals_inline === 'string')
    holder[key] = { ...bytes, annals_inline: withType(bytes.annals_inline, type) }
}

function withType(text: string, type: string): string {
  return text.replace(DATA_URL, (start, given) => (isOtherImage(given, type) ? `data:${type}` : start))
}

function isOtherImage(given: unknown, type: string): boolean {
  return typeof given === 'string' && IMAGE.test(given) && given !== type
}

/** Takes out the bytes of images with these hashes. Changes the blob, in which references stand for bytes. */
export function takeOutImages(format: MessageFormat, blob: unknown, hashes: ReadonlySet<string>): void {
  for (const { holder, key } of bytePlaces(format, blob)) {
    const bytes = holder[key]
    if (isObject(bytes) && isImage(bytes) && hashes.has(String(bytes.annals_blob))) holder[key] = ''
  }
}

function isImage({ media_type }: JsonObject): boolean {
  return typeof media_type === 'string' && IMAGE.test(media_type)
}
