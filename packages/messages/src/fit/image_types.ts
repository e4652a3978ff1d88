import { bytePlaces } from '../attachments.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { imageTypeOfBase64 } from '../media_facts.js'

const TYPE_FIELDS = ['media_type', 'mimeType', 'mime_type'] as const
const DATA_URL = /^data:([^;,]*)/i

/**
 * Says of each image what its bytes are: providers refuse another type than that, and with it every later request. Changes
 * the blob, in which references still stand for bytes that are elsewhere.
 */
export function writeTrueImageTypes(format: MessageFormat, blob: unknown): void {
  for (const { holder, key, is_opaque } of bytePlaces(format, blob)) {
    if (is_opaque) continue
    const bytes = holder[key]
    const type = isObject(bytes) ? imageTypeOf(bytes) : typeof bytes === 'string' && imageTypeIn(bytes)
    if (typeof type === 'string') writeType(holder, key, type)
  }
}

/** Bytes that were taken out have the type that they are, where they are an image. */
function imageTypeOf({ media_type }: JsonObject): string | undefined {
  return typeof media_type === 'string' && media_type.startsWith('image/') ? media_type : undefined
}

function imageTypeIn(text: string): string | undefined {
  const isUrl = DATA_URL.test(text)
  return imageTypeOfBase64(isUrl ? text.slice(text.indexOf(',') + 1, text.indexOf(',') + 33) : text)
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
  return typeof given === 'string' && /^image\//i.test(given) && given.toLowerCase() !== type
}

/** Takes out the bytes of images with these hashes. Changes the blob, in which references stand for bytes. */
export function takeOutImages(format: MessageFormat, blob: unknown, hashes: ReadonlySet<string>): void {
  for (const { holder, key } of bytePlaces(format, blob)) {
    const bytes = holder[key]
    if (isObject(bytes) && imageTypeOf(bytes) && hashes.has(String(bytes.annals_blob))) holder[key] = ''
  }
}
