import { createHash, randomUUID } from 'node:crypto'
import { bytePlaces, MESSAGE_FORMATS, type MessageFormat, typeOfBytes } from '@annals/messages'
import { isJsonObject, isRefusal, readStorable } from '@annals/messages/json'

const BASE64_LENGTH_MAX = 32 * 1024
/** Characters decoded at once: whole groups of four. */
const DECODED_AT_ONCE = 1024 * 1024
const PREFIX_LENGTH_MAX = 256
/** The text before base64 in a `data:` URL: no quotes or backslashes, but for those that escape a slash. */
const DATA_URL = /^data:((?:[ !#-+\--[\]-~]|\\\/){0,240});base64,/i
const QUOTE = 0x22
const BACKSLASH = 0x5c

export interface TakenBytes {
  sha256: string
  bytes: Uint8Array
}

/** A string of base64 in a JSON text, with its quotes. */
interface FoundBase64 extends TakenBytes {
  from: number
  to: number
  /** The beginning of a `data:` URL, as it is written; otherwise empty. */
  prefix: string
  media_type: string
  /** Of base64 in the URL-safe alphabet. */
  encoding: 'base64url' | 'base64url-unpadded' | undefined
}

/**
 * Takes long base64 out of the messages in a JSON text, wherever their formats have binary content, and leaves references
 * to the bytes. What could not be put back to the character, such as base64 with line breaks, stays. Only long strings are
 * looked at, and the text is parsed without them: whatever its length, that takes as long as parsing the rest.
 */
export function takeOutBytes(
  body: Buffer,
  rest_bytes_max: number,
  blob_bytes_max: number,
): { body: Buffer; taken: TakenBytes[] } {
  const found = findBase64(body, blob_bytes_max)
  const rest_length = found.reduce((sum, { from, to }) => sum - (to - from), body.length)
  if (found.length === 0 || rest_length > rest_bytes_max) return { body, taken: [] }
  // No caller can write what stands in its place meanwhile.
  const name = randomUUID()
  const rest = withInstead(body, found, (_, index) => `"${name}${index}"`)
  const json = readStorable(rest)
  if (isRefusal(json)) return { body: rest, taken: [] }
  const byName = new Map(found.map((one, index) => [name + index, one]))
  const references = new Map<FoundBase64, string>()
  for (const { holder, key, holds, media_type } of messagesIn(json.value).flatMap(placesIn)) {
    const one = byName.get(holder[key] as string)
    if (!one || holds === (one.prefix === '' ? 'url' : 'data')) continue
    const type = JSON.stringify(typeOf(one, media_type))
    // As PostgreSQL writes it: blob_bytes.ts looks for this text.
    const encoding = one.encoding === undefined ? '' : `"encoding": "${one.encoding}", `
    const fields = `${encoding}"media_type": ${type}, "annals_blob": "${one.sha256}", "annals_inline": "${one.prefix}"`
    references.set(one, `{${fields}}`)
  }
  return {
    body: withInstead(body, found, (one) => references.get(one) ?? body.subarray(one.from, one.to)),
    taken: [...references.keys()].map(({ sha256, bytes }) => ({ sha256, bytes })),
  }
}

/** The type of bytes as the message says it, but of an image or a PDF what it is: many are something else. */
function typeOf({ bytes, media_type }: FoundBase64, beside: string | undefined): string {
  const said = media_type || beside || 'application/octet-stream'
  return /^(image\/|application\/pdf$)/i.test(said) ? (typeOfBytes(bytes) ?? said) : said
}

function withInstead(
  body: Buffer,
  found: FoundBase64[],
  instead: (one: FoundBase64, index: number) => string | Buffer,
): Buffer {
  let at = 0
  const pieces = found.flatMap((one, index) => {
    const before = body.subarray(at, one.from)
    at = one.to
    return [before, Buffer.from(instead(one, index))]
  })
  return Buffer.concat([...pieces, body.subarray(at)])
}

/** The messages in a body: one, or those of a batch, of several, or of a summary. */
function messagesIn(value: unknown): Array<{ format: unknown; blob: unknown }> {
  if (!isJsonObject(value)) return []
  const { blob, format = 'openai' } = value
  const inner = [value.entries, value.appends, value.summary].flat()
  return [{ format, blob }, ...inner.flatMap(messagesIn)]
}

function placesIn({ format, blob }: { format: unknown; blob: unknown }) {
  return MESSAGE_FORMATS.includes(format as MessageFormat) ? bytePlaces(format as MessageFormat, blob) : []
}

/**
 * A long string has one of the positions that are looked at inside it. What stands between two quotes and is base64 is a
 * string: outside of one, there is a comma or a colon. It is a whole one unless its first quote is escaped.
 */
function findBase64(body: Buffer, bytes_max: number): FoundBase64[] {
  const found: FoundBase64[] = []
  for (let at = 0; at + BASE64_LENGTH_MAX < body.length; ) {
    const inside = at + BASE64_LENGTH_MAX
    const from = body.lastIndexOf(QUOTE, inside - 1)
    at = body.indexOf(QUOTE, inside)
    if (at < 0) break
    const isLong = from >= 0 && at - from > BASE64_LENGTH_MAX && body[from - 1] !== BACKSLASH
    const one = isLong && readBase64(body.subarray(from + 1, at), bytes_max)
    if (one) found.push({ ...one, from, to: at + 1 })
  }
  return found
}

function readBase64(text: Buffer, bytes_max: number): Omit<FoundBase64, 'from' | 'to'> | undefined {
  const [prefix = '', type = ''] = DATA_URL.exec(text.toString('latin1', 0, PREFIX_LENGTH_MAX)) ?? []
  const decoded = decode(text.subarray(prefix.length))
  if (!decoded || decoded.bytes.length > bytes_max) return undefined
  const sha256 = createHash('sha256').update(decoded.bytes).digest('hex')
  return { sha256, ...decoded, prefix, media_type: type.replaceAll('\\/', '/') }
}

/** The bytes; undefined unless they are written like this. Some clients escape slashes. */
function decode(text: Buffer): Pick<FoundBase64, 'bytes' | 'encoding'> | undefined {
  const base64 = text.includes(BACKSLASH)
    ? Buffer.from(text.toString('latin1').replaceAll('\\/', '/'), 'latin1')
    : text
  if (base64.length <= BASE64_LENGTH_MAX) return undefined
  const encoding = encodingOf(base64)
  const bytes = Buffer.allocUnsafeSlow(Math.ceil(base64.length / 4) * 3)
  let length = 0
  for (let at = 0; at < base64.length; at += DECODED_AT_ONCE) {
    const piece = base64.toString('latin1', at, at + DECODED_AT_ONCE)
    const end = length + bytes.write(piece, length, 'base64')
    const isPadded = (end - length) % 3 !== 0 && at + DECODED_AT_ONCE < base64.length
    if (isPadded || encoded(bytes.subarray(length, end), encoding) !== piece) return undefined
    length = end
  }
  return { bytes: bytes.subarray(0, length), encoding }
}

function encodingOf(base64: Buffer): FoundBase64['encoding'] {
  if (base64.indexOf(0x2d) < 0 && base64.indexOf(0x5f) < 0) return undefined
  return base64.length % 4 === 0 ? 'base64url' : 'base64url-unpadded'
}

/** Bytes as base64, in the alphabet of the sender. */
export function encoded(bytes: Buffer, encoding: FoundBase64['encoding']): string {
  const base64 = bytes.toString(encoding === undefined ? 'base64' : 'base64url')
  return encoding === 'base64url' ? base64.padEnd(Math.ceil(base64.length / 4) * 4, '=') : base64
}
