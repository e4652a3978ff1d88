import { UNUSUAL } from './fold.js'

declare class TextEncoder {
  encodeInto(text: string, bytes: Uint8Array): { read: number; written: number }
}

/** What a character is to the detectors, by its code. */
export const OTHER = 0
export const LETTER = 1
export const DIGIT = 2
/** `_` and `-`, which keys contain but do not begin with. */
export const JOINT = 3
export const AT = 4
export const PLUS = 5
export const PERCENT = 6

/** Codes of all characters beyond ASCII: others, letters of the addresses of Europe, and letters of other scripts. */
const BEYOND = 0x80
export const LATIN_LETTER = 0x81
export const FOREIGN_LETTER = 0x82

export const KINDS = new Uint8Array(256)
for (let code = 0; code < BEYOND; code++) {
  const character = String.fromCharCode(code)
  if (/[A-Za-z]/.test(character)) KINDS[code] = LETTER
  else if (/\d/.test(character)) KINDS[code] = DIGIT
}
KINDS[0x5f] = JOINT
KINDS[0x2d] = JOINT
KINDS[0x40] = AT
KINDS[0x2b] = PLUS
KINDS[0x25] = PERCENT

/** Also a mark on one. */
function isLatin(code: number): boolean {
  return (
    (code >= 0xc0 && code <= 0x36f && code !== 0xd7 && code !== 0xf7) || (code >= 0x1e00 && code <= 0x1eff)
  )
}

function isForeign(code: number): boolean {
  if (code < 0x370) return false
  // Between the scripts stand signs and punctuation.
  return code < 0x2000 || (code >= 0x2c00 && code < 0xd800 && !(code >= 0x2e00 && code < 0x3040))
}

/** The codes of characters, by those of UTF-16; 0: it is seen as another one, or not at all. Made when it is needed. */
let codes_beyond: Uint8Array | undefined

function codeBeyond(code: number): number {
  codes_beyond ??= Uint8Array.from({ length: 0x10000 }, (_, code) => {
    if (UNUSUAL.test(String.fromCharCode(code))) return 0
    return isLatin(code) ? LATIN_LETTER : isForeign(code) ? FOREIGN_LETTER : BEYOND
  })
  return codes_beyond[code]!
}

/** A text as the detectors read it, with a zero before it: the code of each character is at its place in the text. */
export interface Reading {
  readonly text: string
  readonly codes: Uint8Array
}

/** Zeros around a text's codes: nothing that looks beyond its ends looks farther. */
export const ZEROS_BEFORE = 1
const ZEROS_AFTER = 64
const SCRATCH_LENGTH = 65_536
/** The platform's encoder is faster from here on. */
const LENGTH_TO_ENCODE = 64
const ENCODER = new TextEncoder()
const scratch = new Uint8Array(SCRATCH_LENGTH)

/**
 * The codes of a text, one a character, with zeros around, until those of the next are made. Looking at the characters
 * of a string takes several times as long. Undefined: the text has to be folded.
 */
export function codesOf(text: string): Uint8Array | undefined {
  const end = ZEROS_BEFORE + text.length
  const codes = end + ZEROS_AFTER <= SCRATCH_LENGTH ? scratch : new Uint8Array(end + ZEROS_AFTER)
  codes.fill(0, end, end + ZEROS_AFTER)
  if (text.length >= LENGTH_TO_ENCODE && encode(text, codes)) return codes
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const own = code < BEYOND ? code : codeBeyond(code)
    if (own === 0 && code !== 0) return undefined
    codes[at + ZEROS_BEFORE] = own
  }
  return codes
}

/** Returns whether it is ASCII. */
function encode(text: string, codes: Uint8Array): boolean {
  const into = codes.subarray(ZEROS_BEFORE, ZEROS_BEFORE + text.length)
  const { read, written } = ENCODER.encodeInto(text, into)
  return read === text.length && written === text.length
}

export function kindAt(codes: Uint8Array, at: number): number {
  return KINDS[codes[at]!]!
}

/** Where letters, digits and joints end that begin here. */
export function wordEnd(codes: Uint8Array, from: number): number {
  let at = from
  for (let kind = kindAt(codes, at); kind >= LETTER && kind <= JOINT; kind = kindAt(codes, ++at));
  return at
}

export function isDigit(codes: Uint8Array, at: number): boolean {
  const code = codes[at]!
  return code >= 0x30 && code <= 0x39
}

/** A letter or a digit of ASCII. */
export function isAlphanumeric(codes: Uint8Array, at: number): boolean {
  const kind = kindAt(codes, at)
  return kind === LETTER || kind === DIGIT
}

/** The letter of an escape, such as a line break, which belongs to no word. */
export function isEscape(codes: Uint8Array, at: number): boolean {
  const code = codes[at]!
  return (code === 0x6e || code === 0x72 || code === 0x74) && codes[at - 1] === 0x5c
}

export function isSpace(codes: Uint8Array, at: number): boolean {
  return codes[at] === 0x20
}
