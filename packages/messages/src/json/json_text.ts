/**
 * Most levels of nesting of a JSON text. PostgreSQL's own limit depends on its stack size (about 6,000 levels with
 * the default 2 MB); this one is well below any server's, and below what overflows our own stack.
 */
export const JSON_DEPTH_MAX = 1_000

/** Whether brackets nest deeper than `depth_max` in a JSON text. Brackets inside strings do not count. */
export function nestsTooDeep(text: string, depth_max: number): boolean {
  if (text.length <= depth_max || !hasMore(text, depth_max)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfString(text, at) - 1
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > depth_max) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** Whether there are more opening brackets than that, those inside strings included: most texts have far fewer. */
function hasMore(text: string, brackets_max: number): boolean {
  let left = brackets_max
  for (const bracket of '{[')
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1))
      if (--left < 0) return true
  return false
}

const BACKSLASH = 0x5c

/** The position after the JSON string whose opening quote is at `start`; the text's end if it is not closed. */
export function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    // A quote is escaped by an odd number of backslashes before it. Each backslash is counted for one quote only.
    let before = quote - 1
    while (before > start && text.charCodeAt(before) === BACKSLASH) before--
    if ((quote - before) % 2 === 1) return quote + 1
  }
  return text.length
}

/**
 * Slices of a JSON text as it was sent. What is stored and answered is cut out of the body by these, so that no
 * number or string of a caller's is parsed and written again. The text must be valid JSON, as readStorable ensures.
 * Functions pass positions in one text instead of substrings: slicing a slice is slow.
 */

const QUOTE = 0x22
const COMMA = 0x2c

/** The position of a value: `text.slice(from, to)`. */
export interface Slice {
  from: number
  to: number
}

/**
 * The members of the object that begins at `from`: each key with its value's text. Of repeated keys, the last wins.
 */
export function memberTexts(text: string, from = 0): Map<string, string> {
  return objectAt(text, from).members
}

/** The position of a member's value in the object that begins at `from`; undefined if there is none. */
export function memberSlice(text: string, name: string, from = 0): Slice | undefined {
  let found: Slice | undefined
  walkMembers(text, from, (key, from) => {
    const to = endOfValue(text, from)
    if (key === name) found = { from, to }
    return to
  })
  return found
}

/** An object in a text, with the texts of its members. */
export interface ObjectSlice extends Slice {
  members: Map<string, string>
}

/**
 * The objects in the array that is a member of the object that begins at `from`, in one walk over the text: where a
 * large array is most of it, each further walk costs as much as parsing. Of repeated arrays, the last counts.
 */
export function memberObjects(text: string, name: string, from = 0): ObjectSlice[] {
  let found: ObjectSlice[] = []
  walkMembers(text, from, (key, at) => {
    if (key !== name || text[at] !== '[') return endOfValue(text, at)
    found = []
    return walkElements(text, at, (from) => {
      if (text[from] !== '{') return endOfValue(text, from)
      const object = objectAt(text, from)
      found.push(object)
      return object.to
    })
  })
  return found
}

/** The positions of the elements of the array that begins at `from`, in order. */
export function elementSlices(text: string, from = 0): Slice[] {
  const elements: Slice[] = []
  walkElements(text, from, (from) => {
    const to = endOfValue(text, from)
    elements.push({ from, to })
    return to
  })
  return elements
}

function objectAt(text: string, from: number): ObjectSlice {
  const members = new Map<string, string>()
  const to = walkMembers(text, from, (key, from) => {
    const to = endOfValue(text, from)
    members.set(key, text.slice(from, to))
    return to
  })
  return { from, to, members }
}

/** Visits the values of an array at their positions. A visit returns the position after its value, as the whole does. */
function walkElements(text: string, from: number, visit: (from: number) => number): number {
  let at = skipSpace(text, text.indexOf('[', from) + 1)
  if (text[at] === ']') return at + 1
  for (;;) {
    const behind = skipSpace(text, visit(at))
    if (text.charCodeAt(behind) !== COMMA) return behind + 1
    at = skipSpace(text, behind + 1)
  }
}

/** The same for the values of an object, with their keys. */
function walkMembers(text: string, from: number, visit: (key: string, from: number) => number): number {
  let at = skipSpace(text, text.indexOf('{', from) + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const key_end = endOfString(text, at)
    const written = text.slice(at + 1, key_end - 1)
    const key = written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written
    const behind = skipSpace(text, visit(key, skipSpace(text, text.indexOf(':', key_end) + 1)))
    if (text.charCodeAt(behind) !== COMMA) return behind + 1
    at = skipSpace(text, behind + 1)
  }
  return at + 1
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first === QUOTE) return endOfString(text, from)
  if (first !== 0x7b && first !== 0x5b) return endOfLiteral(text, from)
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at) - 1
    else if (code === 0x7b || code === 0x5b) depth++
    else if ((code === 0x7d || code === 0x5d) && --depth === 0) return at + 1
  }
  return text.length
}

/** The position after a number, true, false or null. */
function endOfLiteral(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === 0x7d || code === 0x5d || isSpace(code)) return at
  }
  return text.length
}

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

/** The result of a slow check of a JSON text: a value that cannot be stored, or by how much the text grows in jsonb. */
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
// very long number. Hashes and ids often seem to have an exponent: a second look finds numbers only.
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[eE][+-]?\d\d/
const ESCAPE_OR_EXPONENT = /\\u(?:0000|[dD][89a-fA-F])|(?:^|[\s:,[])-?\d[\d.]*[eE][+-]?\d\d/
/** The byte order mark that some editors write. JSON forbids it, and naming it is clearer than "unexpected token". */
const BOM = 0xfeff

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads JSON to be stored as jsonb, as text or as bytes, or returns why it cannot be stored. */
export function readStorable(source: string | Uint8Array): JsonText | JsonRefusal {
  let text: string
  try {
    text = typeof source === 'string' ? source : utf8.decode(source)
  } catch {
    return { refused: 'not_json', reason: 'it is not valid UTF-8' }
  }
  if (text.charCodeAt(0) === BOM) return { refused: 'not_json', reason: 'it begins with a byte order mark' }
  const deep = nestsTooDeep(text, JSON_DEPTH_MAX)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { refused: 'not_json', reason: (error as Error).message.replace(/\s+/g, ' ') }
  }
  const isSuspicious = SUSPICIOUS.test(text) && ESCAPE_OR_EXPONENT.test(text)
  if (!deep && !isSuspicious && !mayHaveLongNumber(text)) return { text, value, expansion: 0 }
  const { unstorable, expansion } = inspect(text)
  return unstorable ? { refused: 'unstorable', ...unstorable } : { text, value, expansion }
}

/**
 * Whether a number might have more digits than numeric holds. The digits of such a number fill the distance between two
 * sampled positions, most of which have none at their end. (A pattern such as \d{16000} takes quadratic time on shorter
 * runs.)
 */
function mayHaveLongNumber(text: string): boolean {
  const step = NUMBER_FRACTION_DIGITS_MAX >> 2
  for (let end = step; end < text.length; end += step) {
    let at = end
    while (at > end - step && isDigit(text, at)) at--
    if (at === end - step) return true
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
