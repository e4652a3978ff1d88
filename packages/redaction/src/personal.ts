import {
  codesOf,
  FOREIGN_LETTER,
  isAlphanumeric,
  isDigit,
  isEscape,
  isSpace,
  LATIN_LETTER,
  ZEROS_BEFORE,
} from './characters.js'
import { COUNTRY_CODES, IBAN_LENGTHS } from './countries.js'
import { DETECTOR_NUMBERS, type Detector, type Finding } from './detectors.js'
import type { Spans } from './spans.js'

const LOCAL_LENGTH_MAX = 64
const DOMAIN_LENGTH_MAX = 253
const LABEL_LENGTH_MAX = 63
/** Last parts of names of files, not of domains. */
const FILES: ReadonlySet<number> = new Set(
  'png jpg jpeg gif svg webp ico css js mjs cjs ts tsx jsx json html xml yaml yml toml lock map txt'
    .split(' ')
    .map((name) => fewLetters(codesOf(name)!, ZEROS_BEFORE, ZEROS_BEFORE + name.length)),
)

const FILES_LENGTH_MAX = 4

/** At most four letters, whatever their case, as a number; 0 for another alphabet. */
function fewLetters(codes: Uint8Array, from: number, to: number): number {
  let letters = 0
  for (let at = from; at < to; at++) {
    const code = codes[at]!
    if (code > 0x7f) return 0
    letters = (letters << 7) | code | 0x20
  }
  return letters
}

/** What characters are in addresses, a bit each. */
const PLAIN = 1
const LATIN = 2
const FOREIGN = 4
/** . _ + - ' = & # are allowed before the `@`; the last three, and others, nobody has. */
const MARK = 8
const CLASSES = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[A-Za-z\d]/.test(character)) return PLAIN
  return code < 128 && "._+-'".includes(character) ? MARK : 0
})
CLASSES[LATIN_LETTER] = LATIN | FOREIGN
CLASSES[FOREIGN_LETTER] = FOREIGN

function classAt(codes: Uint8Array, at: number): number {
  return CLASSES[codes[at]!]!
}

/** Where the part before `@` begins, of plain characters and these. */
function localFrom(codes: Uint8Array, at: number, beyond: number): number {
  let from = at
  while (at - from < LOCAL_LENGTH_MAX && classAt(codes, from - 1) & (PLAIN | MARK | beyond)) from--
  while (from < at && !(classAt(codes, from) & (PLAIN | beyond)) && codes[from]! !== 0x5f) from++
  // What stands after a backslash belongs to an escape.
  return at - from > 1 && isEscape(codes, from) ? from + 1 : from
}

/** Where a domain ends that begins here; where none is, the place that was reached, below zero. */
function domainTo(codes: Uint8Array, begin: number, beyond: number): number {
  let to = 0
  let label = begin
  let isLetters = true
  let at = begin
  for (; at - begin <= DOMAIN_LENGTH_MAX; at++) {
    const code = codes[at]!
    if (CLASSES[code]! & (PLAIN | beyond)) {
      if (code <= 0x39) isLetters = false
      continue
    }
    if (code === 0x2d) {
      isLetters = false
      continue
    }
    const length = at - label
    if (length === 0 || length > LABEL_LENGTH_MAX || codes[label]! === 0x2d) break
    if (label > begin && isTopLevel(codes, label, at, isLetters)) to = at
    if (code !== 0x2e) break
    label = at + 1
    isLetters = true
  }
  return to || -at
}

function isTopLevel(codes: Uint8Array, from: number, to: number, isLetters: boolean): boolean {
  const length = to - from
  if (!isLetters) return length >= 4 && isEncoded(codes, from)
  if (length > FILES_LENGTH_MAX) return length <= 24
  return length >= 2 && !FILES.has(fewLetters(codes, from, to))
}

/** What is written in other letters begins with `xn--`. */
function isEncoded(codes: Uint8Array, from: number): boolean {
  const isXN = (codes[from]! | 0x20) === 0x78 && (codes[from + 1]! | 0x20) === 0x6e
  return isXN && codes[from + 2] === 0x2d && codes[from + 3] === 0x2d
}

/** The address around an `@`, which is written from `at` to `after`. */
export function emailAround(codes: Uint8Array, at: number, after: number): Finding | undefined {
  // Most of what is no address is told by this one character.
  if (!(classAt(codes, after) & (PLAIN | FOREIGN))) return undefined
  let from = localFrom(codes, at, LATIN)
  if (from === at) from = localFrom(codes, at, FOREIGN)
  if (from === at) return undefined
  let to = domainTo(codes, after, LATIN)
  if (to < 0 && classAt(codes, -to) & FOREIGN) to = domainTo(codes, after, FOREIGN)
  if (to < 0) return undefined
  // git@host:path names no person.
  if (at - from === 3 && isGit(codes, from)) return undefined
  return { from, to, detector: 'email' }
}

function isGit(codes: Uint8Array, from: number): boolean {
  return codes[from] === 0x67 && codes[from + 1] === 0x69 && codes[from + 2] === 0x74
}

/** Digits of a number with its country's code, and after the code. */
const E164_DIGITS_MAX = 15
const NATIONAL_DIGITS_MIN = 6
const HEAD_LENGTH = 5
/** Of codes of countries, by three digits that begin with one. */
const CODE_LENGTHS = new Uint8Array(1_000)
for (const code of COUNTRY_CODES)
  for (let rest = 0; rest < 10 ** (3 - code.length); rest++)
    CODE_LENGTHS[Number(code) * 10 ** (3 - code.length) + rest] = code.length

/** A number as E.164 has it, with or without marks between its digits. `from` is at the plus, `begin` after it. */
export function phoneAt(codes: Uint8Array, from: number, begin: number): Finding | undefined {
  const before = codes[from - 1]!
  const isWord = isAlphanumeric(codes, from - 1) && !isEscape(codes, from - 1)
  if (isWord || before === 0x2b || before === 0x5f) return undefined
  let count = 0
  let head = 0
  let dots = 0
  let marks = 0
  let to = 0
  for (let at = begin; count <= E164_DIGITS_MAX; ) {
    if (isDigit(codes, at)) {
      if (count++ < HEAD_LENGTH) head = 10 * head + codes[at]! - 0x30
      at++
      if (!isDigit(codes, at) && isPhone(head, count, dots === 1 && marks === 1) && isPhoneEnd(codes, at))
        to = at
      continue
    }
    const next = afterMark(codes, at)
    if (next === at || !isDigit(codes, next)) break
    if (codes[at]! === 0x2e) dots++
    marks++
    at = next
  }
  return to > 0 ? { from, to, detector: 'phone' } : undefined
}

/** Of so many digits, which begin with these five. */
function isPhone(head: number, count: number, isDecimal: boolean): boolean {
  if (count < HEAD_LENGTH || count > E164_DIGITS_MAX || head < 10_000) return false
  // In North America, the code of the area and the number after it begin with 2 to 9.
  if (head < 20_000) return count === 11 && head >= 12_000 && head % 10 >= 2
  const length = CODE_LENGTHS[Math.trunc(head / 100)]!
  return length > 0 && count - length >= (isDecimal ? NATIONAL_DIGITS_MIN + 3 : NATIONAL_DIGITS_MIN)
}

/** After one mark between digits: a space, a dash, a dot, a slash, or a bracket with a space. */
function afterMark(codes: Uint8Array, at: number): number {
  const mark = codes[at]!
  if (mark >= 0x2d && mark <= 0x2f) return at + 1
  let to = mark === 0x20 ? at + 1 : at
  const bracket = codes[to]!
  if (bracket !== 0x28 && bracket !== 0x29) return to
  to++
  if (bracket === 0x29 && codes[to]! === 0x28) to++
  return isSpace(codes, to) || codes[to]! === 0x2d ? to + 1 : to
}

function isPhoneEnd(codes: Uint8Array, at: number): boolean {
  return !isAlphanumeric(codes, at) || codes[at]! === 0x78
}

/** How the numbers of cards begin, by their lengths. */
const CARD_DIGITS_MIN = 14
const CARD_DIGITS_MAX = 19
const CARDS: Readonly<Record<number, RegExp>> = {
  14: /^3(?:0[0-5]|[689])/,
  15: /^3[47]/,
  16: /^(?:4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|35(?:2[89]|[3-8])|62|5018|5020|5038|6304|6759|676[1-3])/,
  17: /^62/,
  18: /^(?:62|5018|5020|5038|6304|6759|676[1-3])/,
  19: /^(?:4|6011|64[4-9]|65|62|5018|5020|5038|6304|6759|676[1-3])/,
}
/** How they are written in groups: the lengths of these, a hexadecimal digit each, and of all, marks included. */
const GROUPINGS = [
  { form: 0x4444, bits: 0xffff, length: 19, digits: 16 },
  { form: 0x465, bits: 0xfff, length: 17, digits: 15 },
  { form: 0x464, bits: 0xfff, length: 16, digits: 14 },
  { form: 0x44443, bits: 0xfffff, length: 23, digits: 19 },
]

/** By the first four digits: a bit for each length in which such cards are. Made as they are met. */
const LENGTHS_OF_CARDS = new Uint8Array(10_000)
const IS_KNOWN = 0x80

function isCardHead(head: number, digits: number): boolean {
  if (LENGTHS_OF_CARDS[head] === 0) {
    const begin = String(head).padStart(4, '0')
    let bits = IS_KNOWN
    for (const [length, begins] of Object.entries(CARDS))
      if (begins.test(begin)) bits |= 1 << (Number(length) - CARD_DIGITS_MIN)
    LENGTHS_OF_CARDS[head] = bits
  }
  return (LENGTHS_OF_CARDS[head]! & (1 << (digits - CARD_DIGITS_MIN))) !== 0
}

export function isCard(digits: string): boolean {
  const end = ZEROS_BEFORE + digits.length
  return cardBetween(codesOf(digits)!, ZEROS_BEFORE, end, digits.length) === ZEROS_BEFORE
}

/** The digits of a whole number, however it is written; undefined: it is none. */
export function digitsOf(number: string): string | undefined {
  if (/^\d+$/.test(number)) return number
  const parts = /^-?(\d+)(?:\.(\d+))?(?:[eE]\+?(\d{1,2}))?$/.exec(number)
  if (!parts) return undefined
  const [, whole = '', fraction = '', exponent = '0'] = parts
  const digits = (whole + fraction).padEnd(whole.length + Number(exponent), '0')
  const end = whole.length + Number(exponent)
  return /^0*$/.test(digits.slice(end)) ? digits.slice(0, end) : undefined
}

/** Of the digits in a part of a text. */
function luhn(codes: Uint8Array, from: number, to: number): boolean {
  let sum = 0
  let isDoubled = false
  for (let at = to - 1; at >= from; at--) {
    const digit = codes[at]! - 0x30
    if (digit < 0 || digit > 9) continue
    const value = isDoubled ? 2 * digit : digit
    sum += value > 9 ? value - 9 : value
    isDoubled = !isDoubled
  }
  return sum % 10 === 0
}

/** Digits of the first group of a card. */
export const GROUP_LENGTH = 4

/** The cards among groups of digits that begin here; returns where the digits end. */
export function cardsFrom(
  codes: Uint8Array,
  begin: number,
  found: Spans,
  wanted: { detectors: ReadonlySet<Detector> },
): number {
  const isWanted = wanted.detectors.has('card')
  let at = begin
  let cleared = begin
  let lengths = 0
  let end = 0
  for (let last_mark = 0; ; ) {
    const from = at
    while (isDigit(codes, at)) at++
    lengths = ((lengths << 4) | Math.min(at - from, 15)) & 0xfffff
    const card = at - from >= 14 ? cardBetween(codes, from, at, at - from) : groupsBefore(codes, at, lengths)
    if (card >= cleared && isWanted) {
      // A letter before the first digit is that of an escape.
      const before = codes[card - 1]!
      if (before !== 0x2e && before !== 0x5f && (card === begin || !isAlphanumeric(codes, card - 1))) {
        found.add(card, at, DETECTOR_NUMBERS.card)
        cleared = at
      }
    }
    const mark = codes[at]!
    // Groups with colons are times and addresses of networks.
    if (!isDigit(codes, at + 1) || mark === 0x3a || isAlphanumeric(codes, at)) return end || at
    // All groups of a card have the same mark between them.
    if (mark !== last_mark) {
      if (end > 0) return end
      lengths &= 0xf
      last_mark = mark
    }
    // Other marks end the digits, but may be those of one card.
    if (mark !== 0x20 && mark !== 0x2d) {
      if (end === 0) end = at
      if ((lengths & 0xf) === lengths ? lengths !== 4 : lengths > 0xffff) return end
    }
    at++
  }
}

/** Where the card begins whose last group ends here, by the lengths of the groups; -1: there is none. */
function groupsBefore(codes: Uint8Array, to: number, lengths: number): number {
  if (lengths < 0x464) return -1
  for (const { form, bits, length, digits } of GROUPINGS)
    if ((lengths & bits) === form && codes[to - length]! >= 0x32)
      return cardBetween(codes, to - length, to, digits)
  return -1
}

/** Where the card of so many digits begins that stands here; -1: it is none. */
function cardBetween(codes: Uint8Array, from: number, to: number, digits: number): number {
  if (digits < CARD_DIGITS_MIN || digits > CARD_DIGITS_MAX) return -1
  // The first group has at least four.
  const head =
    1_000 * codes[from]! + 100 * codes[from + 1]! + 10 * codes[from + 2]! + codes[from + 3]! - 1_111 * 0x30
  if (!isCardHead(head, digits) || !luhn(codes, from, to) || isCut(codes, to)) return -1
  return isOneDigit(codes, from, to) ? -1 : from
}

/** Whether all digits of a part of a text are the same. */
function isOneDigit(codes: Uint8Array, from: number, to: number): boolean {
  const first = codes[from]!
  for (let at = from + 1; at < to; at++) if (isDigit(codes, at) && codes[at]! !== first) return false
  return true
}

function isCut(codes: Uint8Array, to: number): boolean {
  const code = codes[to]!
  return isAlphanumeric(codes, to) || code === 0x5f || (code === 0x2e && isDigit(codes, to + 1))
}

/** A number of an account that begins here, at the beginning of a word, whole or in groups of four with the same mark between them. */
export function ibanAt(codes: Uint8Array, from: number): Finding | undefined {
  if (!isDigit(codes, from + 2) || !isDigit(codes, from + 3)) return undefined
  const length = ibanLength(codes[from]!, codes[from + 1]!)
  if (length === 0) return undefined
  const mark = codes[from + 4]!
  const isGrouped = mark === 0x20 || mark === 0x2d || mark === 0x2e
  const to = from + length + (isGrouped ? Math.ceil(length / 4) - 1 : 0)
  const after = codes[to]!
  if (isAlphanumeric(codes, to) || after === 0x5f || !isAlphanumeric(codes, to - 1)) return undefined
  let rest = 0
  let cases = caseOf(codes[from]!) | caseOf(codes[from + 1]!)
  for (let at = from + 4; at < to; at++) {
    if (isGrouped && (at - from) % 5 === 4 && codes[at++] !== mark) return undefined
    if (!isAlphanumeric(codes, at)) return undefined
    const code = codes[at]!
    cases |= caseOf(code)
    rest = rest97(rest, code)
  }
  // Its first four characters count last.
  for (let at = from; at < from + 4; at++) rest = rest97(rest, codes[at]!)
  return rest === 1 && cases !== BOTH_CASES ? { from, to, detector: 'iban' } : undefined
}

const BOTH_CASES = 3

/** A bit for small letters, and one for capital ones. */
function caseOf(code: number): number {
  return code < 0x41 ? 0 : code > 0x60 ? 1 : 2
}

/** By the letters of a country, 5 bits each. */
const LENGTHS = new Uint8Array(0x400)
for (const [country, length] of IBAN_LENGTHS)
  LENGTHS[((country.charCodeAt(0) & 31) << 5) | (country.charCodeAt(1) & 31)] = length

/** 0: these are letters of no country. */
function ibanLength(first: number, second: number): number {
  return second > 0x40 ? LENGTHS[((first & 31) << 5) | (second & 31)]! : 0
}

/** The rest by 97 of a number to which a digit is added, or the two of a letter. */
function rest97(rest: number, code: number): number {
  return code > 0x39 ? (rest * 100 + (code & 0xdf) - 0x37) % 97 : (rest * 10 + code - 0x30) % 97
}
