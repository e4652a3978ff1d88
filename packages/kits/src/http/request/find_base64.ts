import { createHash } from 'node:crypto'
import { type Base64Lines, JSON_BREAKS, LINE_WIDTH_MIN } from '@annals/messages'

/** Shorter base64 stays where it is. */
const BASE64_LENGTH_MAX = 32 * 1024
const DECODED_AT_ONCE = 1024 * 1024
const PREFIX_LENGTH_MAX = 256
/** Characters that distinguish text from base64. */
const BEGINNING = 100
/** The text before base64 in a `data:` URL: no quotes or backslashes, but for those that escape a slash. */
const DATA_URL = /^data:((?:[ !#-+\--[\]-~]|\\\/){0,240});base64,/i
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SLASH = 0x2f

export interface TakenBytes {
  sha256: string
  bytes: Uint8Array
}

export type Alphabet = 'base64url' | 'base64url-unpadded' | undefined

/** Base64 in a string of a JSON text, with the beginning of a `data:` URL before it. */
export interface Base64Run extends TakenBytes {
  from: number
  to: number
  /** The beginning of a `data:` URL, as it is written; otherwise empty. */
  prefix: string
  media_type: string
  /** Of base64 in the URL-safe alphabet. */
  encoding: Alphabet
  lines: Base64Lines | undefined
  /** It has as many different letters as bytes have, and is no ruler of dashes or digits. */
  is_varied: boolean
}

/** A string in a JSON text, with its quotes, that has base64. */
export interface FoundString {
  from: number
  to: number
  runs: Base64Run[]
}

/**
 * The long strings that are base64 as a whole. A long string has one of the positions that are looked at inside it. What
 * stands between two quotes and is base64 is a string: outside of one, there is a comma or a colon. It is a whole one unless
 * its first quote is escaped.
 */
export function findBase64(body: Buffer, bytes_max: number): FoundString[] {
  const found: FoundString[] = []
  for (let at = 0; at + BASE64_LENGTH_MAX < body.length; ) {
    const inside = at + BASE64_LENGTH_MAX
    const from = body.lastIndexOf(QUOTE, inside - 1)
    at = body.indexOf(QUOTE, inside)
    if (at < 0) break
    const isLong = from >= 0 && at - from > BASE64_LENGTH_MAX && body[from - 1] !== BACKSLASH
    if (!isLong) continue
    const [prefix = ''] = DATA_URL.exec(body.toString('latin1', from + 1, from + 1 + PREFIX_LENGTH_MAX)) ?? []
    const start = from + 1 + prefix.length
    const run = readRun(body, { from: start, to: at, letters: at - start }, from + 1, bytes_max)
    if (run) found.push({ from, to: at + 1, runs: [run] })
  }
  return found
}

/** All strings that have long base64 anywhere, in one walk over the text. */
export function findInTexts(body: Buffer, bytes_max: number): FoundString[] {
  const found: FoundString[] = []
  for (let from = body.indexOf(QUOTE); from >= 0; ) {
    const { to, spans } = readString(body, from)
    let at = from + 1
    const runs = spans.flatMap((span) => {
      const ends = endsOf(body, span)
      for (const to of ends) {
        const run = readRun(body, { ...span, to }, at, bytes_max)
        if (!run) continue
        at = run.to
        return run
      }
      return []
    })
    if (runs.length > 0) found.push({ from, to, runs })
    from = body.indexOf(QUOTE, to)
  }
  return found
}

interface Span {
  from: number
  to: number
  letters: number
  lines?: Base64Lines
}

const OTHER = 0
const LETTER = 1
const STANDARD = 2
const URL_SAFE = 3
const KINDS = new Uint8Array(256)
for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789')
  KINDS[letter.charCodeAt(0)] = LETTER
for (const letter of '+/') KINDS[letter.charCodeAt(0)] = STANDARD
for (const letter of '-_') KINDS[letter.charCodeAt(0)] = URL_SAFE

/** Where the string ends whose first quote is at `from`, and what in it is long and has letters of one alphabet alone. */
function readString(body: Buffer, from: number): { to: number; spans: Span[] } {
  const long = new LongBase64()
  let at = from + 1
  let start = at
  let letters = 0
  let alphabet = OTHER
  const end = (gap: number) => {
    if (letters > 0) long.add({ from: start, to: at, letters }, alphabet, gap)
    alphabet = OTHER
    letters = 0
  }
  for (; at < body.length; ) {
    const code = body[at]!
    const isSlash = code === BACKSLASH && body[at + 1] === SLASH
    const kind = isSlash ? STANDARD : KINDS[code]!
    if (kind === OTHER) {
      const gap = letters >= LINE_WIDTH_MIN && code === BACKSLASH ? breakAt(body, at) : 0
      end(gap)
      if (code === QUOTE) break
      // Four digits come after a `u`.
      at += gap > 0 ? gap : code === BACKSLASH ? (body[at + 1] === 0x75 ? 6 : 2) : 1
      start = at
      continue
    }
    if (kind !== LETTER && alphabet !== OTHER && alphabet !== kind) {
      end(0)
      start = at
    }
    if (kind !== LETTER) alphabet = kind
    letters++
    at += isSlash ? 2 : 1
  }
  long.close()
  return { to: at + 1, spans: long.spans }
}

/** How long the break of a line is that begins there; 0: there is none. */
function breakAt(body: Buffer, from: number): number {
  let at = from
  while (body[at] === BACKSLASH) at++
  const isFeed = body[at] === 0x6e
  const length = isFeed ? at + 1 - from : 2 * (at + 1 - from)
  const lines = JSON_BREAKS[breakOfLength(length)]
  return lines !== undefined && body.toString('latin1', from, from + length) === lines ? length : 0
}

/** No two of them are equally long. */
function breakOfLength(length: number): number {
  return JSON_BREAKS.findIndex((one) => one.length === length)
}

/** Joins lines that are equally long, but for the last one, and have the same breaks. */
class LongBase64 {
  readonly spans: Span[] = []
  private open: (Span & { width: number; gap: number; alphabet: number }) | undefined

  /** `gap`: how long the break after it is. */
  add(line: Span, alphabet: number, gap: number): void {
    const { open } = this
    const isNext = open && open.to + open.gap === line.from && line.letters <= open.width
    if (isNext && (alphabet === OTHER || open.alphabet === OTHER || alphabet === open.alphabet)) {
      open.to = line.to
      open.letters += line.letters
      if (alphabet !== OTHER) open.alphabet = alphabet
      if (line.letters < open.width || gap !== open.gap) this.close()
      return
    }
    this.close()
    if (line.to - line.from > BASE64_LENGTH_MAX) this.spans.push(line)
    else if (gap > 0) this.open = { ...line, width: line.letters, gap, alphabet }
  }

  close(): void {
    if (!this.open) return
    const { from, to, letters, width, gap } = this.open
    this.open = undefined
    if (letters <= BASE64_LENGTH_MAX) return
    this.spans.push({ from, to, letters, lines: { width, break: breakOfLength(gap) } })
  }
}

/** Where base64 may end that begins there: after its padding, or with the last whole group of four letters. */
function endsOf(body: Buffer, { to, letters, lines }: Span): number[] {
  const odd = letters % 4
  if (odd === 0) return [to]
  const padding = odd === 2 ? '==' : odd === 3 ? '=' : ''
  const isPadded = padding !== '' && body.toString('latin1', to, to + padding.length) === padding
  let whole = to
  for (let left = letters; left > letters - odd; left--) {
    whole -= body[whole - 1] === SLASH && body[whole - 2] === BACKSLASH ? 2 : 1
    if (lines && (left - 1) % lines.width === 0) whole -= JSON_BREAKS[lines.break]!.length
  }
  return [isPadded ? to + padding.length : to, whole]
}

/** Reads base64; undefined if it could not be written again. `first`: where the text before it begins. */
function readRun(
  body: Buffer,
  { from, to, lines }: Span,
  first: number,
  bytes_max: number,
): Base64Run | undefined {
  if (!beginsLikeBase64(body, from)) return undefined
  const text = withoutEscapes(body.subarray(from, to), lines)
  const decoded = decode(text)
  if (!decoded || decoded.bytes.length > bytes_max) return undefined
  const sha256 = createHash('sha256').update(decoded.bytes).digest('hex')
  const before = body.toString('latin1', Math.max(first, from - PREFIX_LENGTH_MAX), from)
  const head = before.slice(Math.max(0, before.toLowerCase().lastIndexOf('data:')))
  const [said = '', type = ''] = DATA_URL.exec(head) ?? []
  const isAhead = said !== '' && said.length === head.length
  const url = isAhead
    ? { prefix: said, media_type: type.replaceAll('\\/', '/') }
    : { prefix: '', media_type: '' }
  return { sha256, ...decoded, ...url, from: from - url.prefix.length, to, lines, is_varied: isVaried(text) }
}

/** Most long strings are text, which shows it soon. */
function beginsLikeBase64(body: Buffer, from: number): boolean {
  for (let at = from; at < from + BEGINNING; at++)
    if (KINDS[body[at]!] === OTHER && body[at] !== BACKSLASH) return false
  return true
}

/** Hexadecimal digits in both cases are 22. */
const LETTERS_MIN = 24

function isVaried(text: Buffer): boolean {
  const seen = new Uint8Array(256)
  let count = 0
  for (let at = 0; at < text.length && count < LETTERS_MIN; at++) {
    if (seen[text[at]!] === 0) count++
    seen[text[at]!] = 1
  }
  return count >= LETTERS_MIN
}

/** The letters alone. Some clients escape slashes. */
function withoutEscapes(text: Buffer, lines: Base64Lines | undefined): Buffer {
  if (!text.includes(BACKSLASH)) return text
  const written = text.toString('latin1')
  const joined = lines ? written.replaceAll(JSON_BREAKS[lines.break]!, '') : written
  return Buffer.from(joined.replaceAll('\\/', '/'), 'latin1')
}

/** The bytes; undefined unless they are written like this. */
function decode(base64: Buffer): Pick<Base64Run, 'bytes' | 'encoding'> | undefined {
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

function encodingOf(base64: Buffer): Alphabet {
  if (base64.indexOf(0x2d) < 0 && base64.indexOf(0x5f) < 0) return undefined
  return base64.length % 4 === 0 ? 'base64url' : 'base64url-unpadded'
}

/** Bytes as base64, in the alphabet of the sender. */
export function encoded(bytes: Buffer, encoding: Alphabet): string {
  const base64 = bytes.toString(encoding === undefined ? 'base64' : 'base64url')
  return encoding === 'base64url' ? base64.padEnd(Math.ceil(base64.length / 4) * 4, '=') : base64
}
