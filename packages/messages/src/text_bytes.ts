import { breaksLength, linesOf } from './base64_lines.js'
import { isObject, type JsonObject } from './blob_reading.js'
import { parseJson, writeJson } from './json/exact_json.js'

/**
 * A text with references in place of its base64, as it is stored where the whole of it was too long. Strings and references
 * follow each other as they do in the text.
 */
interface TextWithBytes {
  annals_text: Array<string | SizedReference>
}

/** A `BlobReference` that says how long the text is with the bytes: of base64 in lines, also how these are. */
interface SizedReference extends JsonObject {
  bytes: number
  break?: string
  width?: number
  media_type: string
  encoding?: 'base64url' | 'base64url-unpadded'
  annals_blob: string
  annals_inline: string
}

/**
 * Stands in a text for the base64 of a blob: `\0x` with how many characters that has, the alphabet, of lines their break and
 * width, and the hash. No stored text has U+0000; JSON writes it as an escape.
 */
const MARK = '\0x'
const MARKS = /\0x(\d+)x[uv]?(?:(\d+)w(\d+)w)?[0-9a-f]{64}/g
/** A mark, or white space, and nothing else but the beginning of a `data:` URL. */
const WHOLE = /^\s*(data:[^\0,]*,\s*)?\0x\d+x[uv]?(?:\d+w\d+w)?([0-9a-f]{64})\s*$/i
/** A body has no more than that, and so no text in it. */
const BYTES_MAX = 25 * 1024 * 1024
/** Base64 has so many tokens of o200k_base for each character, measured on random bytes. */
const TOKENS_A_CHARACTER = 0.69

/** Puts texts with marks where a value has texts with references. Changes the value. A loop: it may nest deeper than the stack. */
export function markTexts(root: unknown): void {
  const left: unknown[] = [root]
  while (left.length > 0) {
    const holder = left.pop()
    if (typeof holder !== 'object' || holder === null) continue
    for (const [key, value] of Object.entries(holder)) {
      if (isTextWithBytes(value)) (holder as Record<string, unknown>)[key] = marked(value)
      else left.push(value)
    }
  }
}

function isTextWithBytes(value: unknown): value is TextWithBytes {
  if (!isObject(value) || !Array.isArray(value.annals_text)) return false
  return (
    Object.keys(value).length === 1 &&
    value.annals_text.every((piece) => typeof piece === 'string' || isSized(piece))
  )
}

function isSized(piece: unknown): boolean {
  if (!isObject(piece) || typeof piece.annals_blob !== 'string' || typeof piece.annals_inline !== 'string')
    return false
  const { bytes, break: given, width } = piece
  if ((given ?? width) !== undefined && !linesOf(given, width)) return false
  // Callers may send such a text themselves, as an import does, and say any size.
  return typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes > 0 && bytes <= BYTES_MAX
}

function marked({ annals_text }: TextWithBytes): string {
  const pieces = annals_text.map((piece) => {
    if (typeof piece === 'string') return piece
    const { bytes, encoding, annals_blob, annals_inline } = piece
    const length = encoding === 'base64url-unpadded' ? Math.ceil((bytes * 4) / 3) : Math.ceil(bytes / 3) * 4
    const alphabet = encoding === 'base64url' ? 'u' : encoding === 'base64url-unpadded' ? 'v' : ''
    const lines = linesOf(piece.break, piece.width)
    const broken = lines ? `${lines.break}w${lines.width}w` : ''
    return `${annals_inline}${MARK}${length}x${alphabet}${broken}${annals_blob}`
  })
  return pieces.join('')
}

/** The reference to the bytes that a text is, in lines or with white space around them; undefined if it has anything else. */
export function referenceIn(value: unknown): JsonObject | undefined {
  if (!isTextWithBytes(value)) return undefined
  const pieces = value.annals_text.filter((piece) => typeof piece !== 'string' || piece.trim() !== '')
  const [first] = pieces
  if (pieces.length !== 1 || typeof first === 'string') return undefined
  const { bytes: _bytes, break: _break, width: _width, ...reference } = first!
  return reference
}

/** A text that is such a mark as one of the bytes alone, without lines and in the standard alphabet; any other as it is. */
export function plainMark(text: string): string {
  return text.includes(MARK) ? text.replace(WHOLE, (_, head = '', sha256) => `${head}\0${sha256}`) : text
}

/** How many characters a text has in which marks may stand for base64. */
export function textLength(text: string): number {
  return text.length + (text.includes(MARK) ? base64Length(text) : 0)
}

/** By how many characters the base64 is longer than its marks. */
function base64Length(text: string): number {
  let length = 0
  for (const found of text.matchAll(MARKS)) length += charactersOf(found) - found[0].length
  return length
}

/** How many characters the base64 that a mark stands for has, with its breaks. */
function charactersOf([, characters, broken, width]: RegExpExecArray): number {
  const length = Number(characters)
  if (broken === undefined) return length
  return length + breaksLength(length, { break: Number(broken), width: Number(width) })
}

/** A text without the base64 that marks stand for, and about how many tokens that has. */
export function withoutBase64(text: string): { text: string; tokens: number } {
  if (!text.includes(MARK)) return { text, tokens: 0 }
  let tokens = 0
  const rest = text.replace(MARKS, (_, characters) => {
    tokens += Math.ceil(Number(characters) * TOKENS_A_CHARACTER)
    return ''
  })
  return { text: rest, tokens }
}

/** A JSON text whose strings name blobs where they have marks of base64. */
export function namingBlobs(json: string): string {
  return json.replace(/\\u0000x\d+x[uv]?(?:\d+w\d+w)?([0-9a-f]{64})/g, '[blob $1]')
}

/** The beginning of a text: base64 that marks stand for is there as a whole or not at all. */
export function beginningOf(
  text: string,
  length_max: number,
  cut: (text: string, length: number) => string,
): string {
  if (!text.includes(MARK)) return cut(text, length_max)
  let at = 0
  let room = length_max
  let beginning = ''
  for (const found of text.matchAll(MARKS)) {
    const ahead = text.slice(at, found.index)
    const length = ahead.length + charactersOf(found)
    if (length > room) return beginning + cut(ahead, room)
    beginning += ahead + found[0]
    room -= length
    at = found.index + found[0].length
  }
  return beginning + cut(text.slice(at), room)
}

const BARE_MARK = /\0(x\d+x[uv]?)(?:(\d+)(w\d+w))?(?=[0-9a-f]{64})/g
/** A mark as somebody wrote it, of a blob's bytes, text or size: it must not become one. */
const WRITTEN = /((?:^|[^\\])(?:\\\\)*)\\u0000(?=(?:x\d+x|n)?[tuv]?(?:\d+w\d+w)?[0-9a-f]{64})/g
const WRITTEN_BREAK = /(?<=\0x\d+x[uv]?)\d+(?=w\d+w[0-9a-f]{64})/g

/** Reads a text of JSON that may have marks. Breaks of lines are escapes in it, and in what is read what these stand for. */
export function parseMarkedJson(text: string): unknown {
  const safe = text.includes('\\u0000')
    ? text.replace(WRITTEN, '$1\\ufffd').replace(WRITTEN, '$1\\ufffd')
    : text
  if (!safe.includes(MARK)) return parseJson(safe)
  return parseJson(
    safe.replace(BARE_MARK, (_, before: string, broken?: string, width = '') => {
      if (broken !== undefined && Number(broken) < 2) throw new SyntaxError('A string has a break in it.')
      return `\\u0000${before}${broken === undefined ? '' : Number(broken) - 2}${width}`
    }),
  )
}

/** Writes JSON into a text: marks stay marks. */
export function writeMarkedJson(value: unknown): string {
  const text = writeJson(value)
  if (!text.includes('\\u0000x')) return text
  const marked = text.replace(WRITTEN, '$1\0').replace(WRITTEN, '$1\0')
  return marked.replace(WRITTEN_BREAK, (broken) => String(Number(broken) + 2))
}
