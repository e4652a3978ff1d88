import { endOfString, JSON_DEPTH_MAX, nestsTooDeep } from './json_text.js'

/**
 * JSON whose numbers keep their value. Ids of 18 and 19 digits are common in tool arguments and do not fit a
 * double: read with `JSON.parse`, 1234567890123456789 comes back as 1234567890123456800.
 */

/** Whether `JSON.stringify` has written the nearest double in place of a number. */
let isRounded = false

/**
 * A number that no double represents exactly, by its digits, which `writeJson` writes. `JSON.stringify` does too
 * where it can write raw number text (Node 22, browsers since 2024); elsewhere it writes the nearest double.
 */
export class ExactNumber {
  constructor(readonly digits: string) {}

  toJSON(): unknown {
    const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown }
    if (rawJSON) return rawJSON(this.digits)
    isRounded = true
    return Number(this.digits)
  }
}

/**
 * A number that a double might not hold has at least 16 digits or an exponent; most texts have neither. After a quote, or
 * within a word, they are times and ids, as traces have them by the hundred.
 */
const SUSPECT_NUMBER = /(?:^|[\s,:[])-?(?:[\d.]{16}|[\d.]{1,15}[eE][-+\d])/

/**
 * Reads JSON like `JSON.parse`, but a number that no double represents exactly becomes an `ExactNumber`. Tool
 * arguments are text, so the check of a request body has not looked into them; V8 parses any depth, but writing the
 * value again would overflow the stack.
 * @throws SyntaxError if the text is not JSON, RangeError if it nests deeper than `JSON_DEPTH_MAX`.
 */
export function parseJson(text: string): unknown {
  return parseWithin(JSON_DEPTH_MAX, text)
}

/** Levels of nesting that an answer adds around stored data. */
const ANSWER_DEPTH = 20

/** Reads an answer of the service like `parseJson`, even if the stored data has the greatest allowed depth. */
export function parseAnswer(text: string): unknown {
  return parseWithin(JSON_DEPTH_MAX + ANSWER_DEPTH, text)
}

function parseWithin(depth_max: number, text: string): unknown {
  if (nestsTooDeep(text, depth_max)) throw new RangeError(`nested deeper than ${depth_max}`)
  return exactly(JSON.parse(text), text)
}

/** The result of `JSON.parse`, or of `parseJson` where that is different. */
export function exactly(parsed: unknown, text: string): unknown {
  return SUSPECT_NUMBER.test(text) ? new ExactReader(text).read() : parsed
}

/** Writes JSON as `JSON.stringify` does, but with the digits of each `ExactNumber`. */
export function writeJson(value: unknown): string {
  isRounded = false
  const text = JSON.stringify(value) ?? 'null'
  return isRounded ? writeExactly(value) : text
}

/** The same, for a tenth of the speed. */
function writeExactly(value: unknown): string {
  if (value instanceof ExactNumber) return value.digits
  if (Array.isArray(value)) return `[${value.map((item) => writeExactly(item ?? null)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members: string[] = []
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${writeExactly(member)}`)
  }
  return `{${members.join(',')}}`
}

/**
 * The canonical form of RFC 8785: members in the order of their names in UTF-16, numbers and strings as ECMAScript writes
 * them. It takes numbers for doubles: if `parseJson` found one that none represents, the first such is returned instead.
 */
export function canonicalJson(value: unknown): string | ExactNumber {
  if (value instanceof ExactNumber) return value
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isArray = Array.isArray(value)
  const members: string[] = []
  for (const [name, member] of Object.entries(value).sort(([a], [b]) => (isArray ? 0 : a < b ? -1 : 1))) {
    const text = canonicalJson(member)
    if (typeof text !== 'string') return text
    members.push(isArray ? text : `${JSON.stringify(name)}:${text}`)
  }
  return isArray ? `[${members.join(',')}]` : `{${members.join(',')}}`
}

/** A string unchanged, anything else as JSON; empty for undefined. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value == null ? '' : writeJson(value)
}

/** Whether the double nearest to the number has the number's own value. */
function fitsDouble(token: string): boolean {
  const nearest = Number(token)
  return Number.isFinite(nearest) && canonical(token) === canonical(String(nearest))
}

/** One spelling for each value: the digits without surrounding zeros, and the power of ten. */
function canonical(token: string): string {
  const [mantissa = '', exponent = '0'] = token.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = trimZeros(digits)
  if (significant === '') return '0'
  const power = Number(exponent) - fraction.length + (digits.length - significant.length)
  return `${token.startsWith('-') ? '-' : ''}${significant}e${power}`
}

/** A loop, as the pattern /0+$/ takes quadratic time on a long run of zeros. */
function trimZeros(digits: string): string {
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end--
  return digits.slice(0, end)
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const SPACE = 0x20

/** Reads a text that `JSON.parse` has accepted, so it checks nothing. */
class ExactReader {
  private at = 0

  constructor(private readonly text: string) {}

  read(): unknown {
    const char = this.next()
    if (char === QUOTE) return this.string()
    if (char === OPEN_BRACE) return this.object()
    if (char === OPEN_BRACKET) return this.array()
    const start = this.at
    while (this.at < this.text.length && !this.isDelimiter()) this.at++
    const token = this.text.slice(start, this.at)
    if (token === 'true' || token === 'false' || token === 'null') return JSON.parse(token)
    return fitsDouble(token) ? Number(token) : new ExactNumber(token)
  }

  /** The next character that is not whitespace, without consuming it. */
  private next(): number {
    while (this.text.charCodeAt(this.at) <= SPACE) this.at++
    return this.text.charCodeAt(this.at)
  }

  private isDelimiter(): boolean {
    const char = this.text.charCodeAt(this.at)
    return char <= SPACE || char === COMMA || char === CLOSE_BRACKET || char === CLOSE_BRACE
  }

  private string(): string {
    const start = this.at
    this.at = endOfString(this.text, start)
    return JSON.parse(this.text.slice(start, this.at)) as string
  }

  private array(): unknown[] {
    const items: unknown[] = []
    this.at++
    while (this.next() !== CLOSE_BRACKET) {
      if (this.next() === COMMA) this.at++
      items.push(this.read())
    }
    this.at++
    return items
  }

  private object(): Record<string, unknown> {
    const members: [string, unknown][] = []
    this.at++
    while (this.next() !== CLOSE_BRACE) {
      if (this.next() === COMMA) this.at++
      this.next()
      const key = this.string()
      if (this.next() === COLON) this.at++
      members.push([key, this.read()])
    }
    this.at++
    // Not by assignment: the key `__proto__` is an ordinary member.
    return Object.fromEntries(members)
  }
}
