import { isAlphanumeric, isDigit, isSpace } from './characters.js'
import { COUNTRY_CODES, IBAN_LENGTHS } from './countries.js'
import type { Detector, Finding } from './detectors.js'

const LOCAL_LENGTH_MAX = 64
const DOMAIN_LENGTH_MAX = 253
const LABEL_LENGTH_MAX = 63
/** Last parts of names of files, not of domains. */
const FILES: ReadonlySet<string> = new Set(
  'png jpg jpeg gif svg webp ico css js mjs cjs ts tsx jsx json html xml yaml yml toml lock map txt'.split(
    ' ',
  ),
)

/** A letter beyond ASCII, as in the addresses of Europe, or a mark on one. */
function isLatin(code: number): boolean {
  return (
    (code >= 0xc0 && code <= 0x36f && code !== 0xd7 && code !== 0xf7) || (code >= 0x1e00 && code <= 0x1eff)
  )
}

/** The same, or one of another script. Many of these are written without spaces between words. */
function isLetter(code: number): boolean {
  if (code < 0x370) return isLatin(code)
  // Between the scripts stand signs and punctuation.
  return code < 0x2000 || (code >= 0x2c00 && code < 0xd800 && !(code >= 0x2e00 && code < 0x3040))
}

/** Where the part before `@` begins. */
function localFrom(text: string, at: number, isBeyond: (code: number) => boolean): number {
  let from = at
  while (from > 0 && at - from < LOCAL_LENGTH_MAX) {
    const code = text.charCodeAt(from - 1)
    // . _ + - ' = & # are taken; others are allowed, but nobody has them.
    const isMark = code === 0x2e || code === 0x5f || code === 0x2b || code === 0x2d || code === 0x27
    if (!isAlphanumeric(text, from - 1) && !isMark && !isBeyond(code)) break
    from--
  }
  while (from < at && !isAlphanumeric(text, from) && !isBeyond(text.charCodeAt(from))) {
    if (text.charCodeAt(from) === 0x5f) break
    from++
  }
  // What stands after a backslash belongs to an escape.
  if (text.charCodeAt(from - 1) === 0x5c && at - from > 1 && 'nrt'.includes(text[from]!)) from++
  return from
}

/** Where a domain ends that begins here; where none is, the place that was reached, below zero. */
function domainTo(text: string, begin: number, isBeyond: (code: number) => boolean): number {
  let to = 0
  let label = begin
  let isLetters = true
  let at = begin
  for (; at - begin <= DOMAIN_LENGTH_MAX; at++) {
    const code = text.charCodeAt(at)
    const isAscii = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a && code < 128
    if (isAscii || isBeyond(code)) continue
    const isPart = isDigit(text, at) || code === 0x2d
    if (isPart) {
      isLetters = false
      continue
    }
    const length = at - label
    if (length === 0 || length > LABEL_LENGTH_MAX || text.charCodeAt(label) === 0x2d) break
    if (label > begin && isTopLevel(text.slice(label, at), isLetters)) to = at
    if (code !== 0x2e) break
    label = at + 1
    isLetters = true
  }
  return to || -at
}

function isTopLevel(label: string, isLetters: boolean): boolean {
  if (!isLetters) return label.toLowerCase().startsWith('xn--')
  return label.length >= 2 && label.length <= 24 && !FILES.has(label.toLowerCase())
}

/** The address around an `@`, which is written from `at` to `after`. */
export function emailAround(text: string, at: number, after: number): Finding | undefined {
  // Most of what is no address is told by this one character.
  if (!isAlphanumeric(text, after) && !isLetter(text.charCodeAt(after))) return undefined
  let from = localFrom(text, at, isLatin)
  if (from === at) from = localFrom(text, at, isLetter)
  if (from === at) return undefined
  let to = domainTo(text, after, isLatin)
  if (to < 0 && isLetter(text.charCodeAt(-to))) to = domainTo(text, after, isLetter)
  if (to < 0) return undefined
  // git@host:path names no person.
  if (at - from === 3 && text.startsWith('git', from)) return undefined
  return { from, to, detector: 'email' }
}

/** Digits of a number with its country's code, and after the code. */
const E164_DIGITS_MAX = 15
const NATIONAL_DIGITS_MIN = 6
const NORTH_AMERICA = /^1[2-9]\d{2}[2-9]\d{6}$/

/** A number as E.164 has it, with or without marks between its digits. `from` is at the plus, `begin` after it. */
export function phoneAt(text: string, from: number, begin: number): Finding | undefined {
  const before = text.charCodeAt(from - 1)
  // The letter of an escape, such as a line break, belongs to no word.
  const isEscape = text.charCodeAt(from - 2) === 0x5c && 'nrt'.includes(text[from - 1]!)
  if (!isEscape && (isAlphanumeric(text, from - 1) || before === 0x2b || before === 0x5f)) return undefined
  let digits = ''
  let dots = 0
  let marks = 0
  let found: Finding | undefined
  let at = begin
  for (; digits.length <= E164_DIGITS_MAX; ) {
    if (isDigit(text, at)) {
      digits += text[at++]
      if (!isDigit(text, at) && isPhone(digits, dots === 1 && marks === 1) && isPhoneEnd(text, at))
        found = { from, to: at, detector: 'phone' }
      continue
    }
    const next = afterMark(text, at)
    if (next === at || !isDigit(text, next)) break
    if (text[at] === '.') dots++
    marks++
    at = next
  }
  return found
}

function isPhone(digits: string, isDecimal: boolean): boolean {
  if (digits.length > E164_DIGITS_MAX || digits[0] === '0') return false
  if (digits[0] === '1') return NORTH_AMERICA.test(digits)
  const code = [1, 2, 3].map((length) => digits.slice(0, length)).find((code) => COUNTRY_CODES.has(code))
  const rest = code === undefined ? 0 : digits.length - code.length
  return rest >= (isDecimal ? NATIONAL_DIGITS_MIN + 3 : NATIONAL_DIGITS_MIN)
}

/** After one mark between digits: a space, a dash, a dot, a slash, or a bracket with a space. */
function afterMark(text: string, at: number): number {
  const mark = text[at]
  if (mark === '-' || mark === '.' || mark === '/') return at + 1
  let to = at
  if (isSpace(text, to)) to++
  if (text[to] === '(' || text[to] === ')') to++
  if (to > at && text[to - 1] === ')' && text[to] === '(') to++
  if (to > at && !isSpace(text, to - 1) && (isSpace(text, to) || text[to] === '-')) to++
  return to
}

function isPhoneEnd(text: string, at: number): boolean {
  return !isAlphanumeric(text, at) || text[at] === 'x'
}

/** How the numbers of cards begin, by their lengths. */
const CARDS: Readonly<Record<number, RegExp>> = {
  14: /^3(?:0[0-5]|[689])/,
  15: /^3[47]/,
  16: /^(?:4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|35(?:2[89]|[3-8])|62|5018|5020|5038|6304|6759|676[1-3])/,
  17: /^62/,
  18: /^(?:62|5018|5020|5038|6304|6759|676[1-3])/,
  19: /^(?:4|6011|64[4-9]|65|62|5018|5020|5038|6304|6759|676[1-3])/,
}
/** How they are written in groups. */
const GROUPINGS = [
  [4, 4, 4, 4],
  [4, 6, 5],
  [4, 6, 4],
  [4, 4, 4, 4, 3],
]

export function isCard(digits: string): boolean {
  return luhn(digits, 0, digits.length) && isKnown(digits)
}

function isKnown(digits: string): boolean {
  return CARDS[digits.length]?.test(digits) === true && digits !== digits[0]!.repeat(digits.length)
}

/** Of the digits in a part of a text. */
function luhn(text: string, from: number, to: number): boolean {
  let sum = 0
  let isDoubled = false
  for (let at = to - 1; at >= from; at--) {
    const digit = text.charCodeAt(at) - 0x30
    if (digit < 0 || digit > 9) continue
    const value = isDoubled ? 2 * digit : digit
    sum += value > 9 ? value - 9 : value
    isDoubled = !isDoubled
  }
  return sum % 10 === 0
}

/** The cards among groups of digits that begin here; returns where the digits end. */
export function cardsFrom(
  text: string,
  begin: number,
  found: Finding[],
  wanted: { detectors: ReadonlySet<Detector> },
): number {
  let at = begin
  let cleared = begin
  for (;;) {
    const from = at
    while (isDigit(text, at)) at++
    if (from >= cleared && wanted.detectors.has('card')) {
      const to = cardTo(text, from, at, from === begin)
      if (to !== undefined) {
        found.push({ from, to, detector: 'card' })
        cleared = to
      }
    }
    if (!(isSpace(text, at) || text.charCodeAt(at) === 0x2d) || !isDigit(text, at + 1)) return at
    at++
  }
}

/** Where the card ends that begins with a group of digits; undefined: it is none. */
function cardTo(text: string, from: number, to: number, isFirst: boolean): number | undefined {
  const length = to - from
  if (length !== 4 && length < 14) return undefined
  const before = text.charCodeAt(from - 1)
  // At the beginning, a letter before it is that of an escape.
  if (before === 0x2e || before === 0x5f || (!isFirst && isAlphanumeric(text, from - 1))) return undefined
  if (length !== 4) return length <= 19 && !isCut(text, to) && isCard(text.slice(from, to)) ? to : undefined
  const mark = text.charCodeAt(to)
  if (text.charCodeAt(from) < 0x32) return undefined
  for (const lengths of GROUPINGS) {
    const end = groupsTo(text, to, mark, lengths)
    if (end === undefined || !luhn(text, from, end) || isCut(text, end)) continue
    if (isKnown(text.slice(from, end).replaceAll(text[to]!, ''))) return end
  }
  return undefined
}

/** Where groups of these lengths end, the first of which ends here. */
function groupsTo(text: string, to: number, mark: number, lengths: readonly number[]): number | undefined {
  let at = to
  for (let index = 1; index < lengths.length; index++) {
    if (text.charCodeAt(at) !== mark) return undefined
    at++
    for (let count = 0; count < lengths[index]!; count++) if (!isDigit(text, at++)) return undefined
    if (isDigit(text, at)) return undefined
  }
  return at
}

function isCut(text: string, to: number): boolean {
  const code = text.charCodeAt(to)
  return isAlphanumeric(text, to) || code === 0x5f || (code === 0x2e && isDigit(text, to + 1))
}

/** A number of an account that begins here, at the beginning of a word, whole or in groups of four. */
export function ibanAt(text: string, from: number): Finding | undefined {
  if (!isDigit(text, from + 2) || !isDigit(text, from + 3)) return undefined
  const length = IBAN_LENGTHS.get(text.slice(from, from + 2).toUpperCase())
  if (length === undefined) return undefined
  const isGrouped = isSpace(text, from + 4)
  let cases = 0
  let rest = 0
  let at = from
  for (let count = 0; count < length; count++) {
    if (isGrouped && count > 0 && count % 4 === 0) {
      if (!isSpace(text, at)) return undefined
      at++
    }
    if (!isAlphanumeric(text, at)) return undefined
    const code = text.charCodeAt(at++)
    if (code > 0x39) cases |= code & 0x20 ? 1 : 2
    if (count >= 4) rest = rest97(rest, code)
  }
  if (isAlphanumeric(text, at) || text[at] === '_' || cases === 3) return undefined
  // Its first four characters count last.
  for (let index = from; index < from + 4; index++) rest = rest97(rest, text.charCodeAt(index))
  return rest === 1 ? { from, to: at, detector: 'iban' } : undefined
}

/** The rest by 97 of a number to which a digit is added, or the two of a letter. */
function rest97(rest: number, code: number): number {
  return code > 0x39 ? (rest * 100 + (code & 0xdf) - 0x37) % 97 : (rest * 10 + code - 0x30) % 97
}
