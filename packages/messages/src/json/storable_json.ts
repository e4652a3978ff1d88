import { endOfString, JSON_DEPTH_MAX, nestsTooDeep } from './slices.js'

/** Digits that jsonb's numeric holds before and after the decimal point (PostgreSQL manual, table 8.2). */
const NUMBER_INTEGER_DIGITS_MAX = 131_072
export const NUMBER_FRACTION_DIGITS_MAX = 16_383
/**
 * Digits that the numbers of one text may take beyond its own length when jsonb writes them out: `1e131071` is 8 bytes
 * as sent and 131,072 when read.
 */
const NUMBER_EXPANSION_MAX = 1_048_576

/** A place in a JSON text, as a JSON pointer (RFC 6901), and why PostgreSQL's jsonb cannot hold what is there. */
export interface Unstorable {
  pointer: string
  reason: string
}

const NUMBER = /-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?/y
const POINTER_LENGTH_MAX = 200
/** PostgreSQL's numeric_in reads no exponent of this size, not even a zero's. */
const EXPONENT_MAX = 1_073_741_823

/** An open array (its element's index) or object (its member's key, undefined while a key is expected). */
interface Level {
  index: number
  key: string | undefined
  isArray: boolean
}

/** What a slow look at a JSON text finds: a value that cannot be stored, or by how much the text grows in jsonb. */
export interface Inspection {
  unstorable: Unstorable | undefined
  /** Digits that numbers take beyond their own length when they are written out. */
  expansion: number
}

/**
 * Finds the first value that jsonb refuses: U+0000, a lone surrogate, a number out of numeric's range, nesting
 * beyond the limit. Also numbers that are short as sent and huge as stored (`1e131071`), whose digits would
 * fill the memory of whoever reads them. `text` must be valid JSON.
 */
export function inspect(text: string): Inspection {
  const levels: Level[] = []
  let expansion = 0
  const refuse = (reason: string): Inspection => ({
    unstorable: { pointer: pointerOf(levels), reason },
    expansion,
  })
  for (let at = 0; at < text.length; at++) {
    const top = levels.at(-1)
    const character = text[at]!
    if (character === '"') {
      const end = endOfString(text, at) - 1
      const reason = refuseString(text.slice(at, end + 1))
      const isKey = top !== undefined && !top.isArray && top.key === undefined
      if (isKey) top.key = reason ? '' : (JSON.parse(text.slice(at, end + 1)) as string)
      if (reason) return refuse(isKey ? `a key there ${reason}` : `the string there ${reason}`)
      at = end
    } else if (character === '{' || character === '[') {
      levels.push({ index: 0, key: undefined, isArray: character === '[' })
      if (levels.length > JSON_DEPTH_MAX) return refuse(`it is nested deeper than ${JSON_DEPTH_MAX} levels`)
    } else if (character === '}' || character === ']') {
      levels.pop()
    } else if (character === ',' && top) {
      if (top.isArray) top.index += 1
      else top.key = undefined
    } else if (character === '-' || (character >= '0' && character <= '9')) {
      NUMBER.lastIndex = at
      const [literal, integer, fraction, exponent] = NUMBER.exec(text)!
      const digits = digitsOf(integer!, fraction ?? '', exponent)
      expansion += digits.integer + digits.fraction - literal.length
      if (digits.integer > NUMBER_INTEGER_DIGITS_MAX || digits.fraction > NUMBER_FRACTION_DIGITS_MAX) {
        return refuse('the number there is out of range')
      }
      if (expansion > NUMBER_EXPANSION_MAX)
        return refuse('the numbers up to there take too many digits when written out')
      at += literal.length - 1
    }
  }
  return { unstorable: undefined, expansion: Math.max(expansion, 0) }
}

function refuseString(literal: string): string | undefined {
  if (!literal.includes('\\u')) return undefined
  const value = JSON.parse(literal) as string
  if (value.includes('\0')) return 'contains the character U+0000'
  return value.isWellFormed() ? undefined : 'contains a lone surrogate'
}

/** Digits that numeric needs before and after the decimal point when the number is written out. */
function digitsOf(
  integer: string,
  fraction: string,
  exponent: string | undefined,
): { integer: number; fraction: number } {
  const shift = Number(exponent ?? 0)
  if (Math.abs(shift) >= EXPONENT_MAX) return { integer: Number.POSITIVE_INFINITY, fraction: 0 }
  const significant = (integer + fraction).replace(/^0+/, '').length
  const isZero = significant === 0
  return {
    integer: isZero ? 1 : Math.max(significant - fraction.length + shift, 1),
    fraction: Math.max(fraction.length - shift, 0),
  }
}

function pointerOf(levels: Level[]): string {
  let pointer = ''
  for (const level of levels) {
    if (pointer.length > POINTER_LENGTH_MAX) break
    if (level.isArray) pointer += `/${level.index}`
    else if (level.key !== undefined) pointer += `/${level.key.replaceAll('~', '~0').replaceAll('/', '~1')}`
  }
  return pointer.length > POINTER_LENGTH_MAX ? `${pointer.slice(0, POINTER_LENGTH_MAX)}…` : pointer
}

/** A JSON text and its JavaScript value. The text is stored; the value is validated. */
export interface JsonText {
  text: string
  value: unknown
  /** How many characters longer the text is when PostgreSQL writes it: `1e400` becomes 401 digits. */
  expansion: number
}

export type JsonRefusal = { refused: 'not_json'; reason: string } | ({ refused: 'unstorable' } & Unstorable)

// The slow check is only needed if the text contains escapes of U+0000 or surrogates, an exponent of two digits, or a
// very long number.
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[eE][+-]?\d\d/
/** The byte order mark that some editors write. JSON forbids it, and naming it is clearer than "unexpected token". */
const BOM = 0xfeff

/** Reads a JSON text to be stored as jsonb, or returns why it cannot be stored. */
export function readStorable(text: string): JsonText | JsonRefusal {
  if (text.charCodeAt(0) === BOM) return { refused: 'not_json', reason: 'it begins with a byte order mark' }
  const deep = nestsTooDeep(text, JSON_DEPTH_MAX)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { refused: 'not_json', reason: (error as Error).message.replace(/\s+/g, ' ') }
  }
  if (!deep && !SUSPICIOUS.test(text) && !mayHaveLongNumber(text)) return { text, value, expansion: 0 }
  const { unstorable, expansion } = inspect(text)
  return unstorable ? { refused: 'unstorable', ...unstorable } : { text, value, expansion }
}

/**
 * Whether a number might have more digits than numeric holds. Such a number covers at least one of the sampled
 * positions and the one after it, so sampling finds it. (A pattern such as \d{16000} takes quadratic time on shorter
 * runs.)
 */
function mayHaveLongNumber(text: string): boolean {
  const step = NUMBER_FRACTION_DIGITS_MAX >> 2
  for (let at = step; at < text.length; at += step) {
    if (isDigit(text, at) && isDigit(text, at - step + 1)) return true
  }
  return false
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

export function isRefusal(result: JsonText | JsonRefusal): result is JsonRefusal {
  return 'refused' in result
}

/** Whether a parsed value is a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
