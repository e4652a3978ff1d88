import { endOfString } from './end_of_string.js'

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
  const members = new Map<string, string>()
  walkMembers(text, from, (key, value) => members.set(key, text.slice(value.from, value.to)))
  return members
}

/** The position of a member's value in the object that begins at `from`; undefined if there is none. */
export function memberSlice(text: string, name: string, from = 0): Slice | undefined {
  let found: Slice | undefined
  walkMembers(text, from, (key, value) => {
    if (key === name) found = value
  })
  return found
}

/** The positions of the elements of the array that begins at `from`, in order. */
export function elementSlices(text: string, from = 0): Slice[] {
  const elements: Slice[] = []
  let at = skipSpace(text, text.indexOf('[', from) + 1)
  if (text[at] === ']') return elements
  for (;;) {
    const to = endOfValue(text, at)
    elements.push({ from: at, to })
    const behind = skipSpace(text, to)
    if (text.charCodeAt(behind) !== COMMA) return elements
    at = skipSpace(text, behind + 1)
  }
}

function walkMembers(text: string, from: number, visit: (key: string, value: Slice) => void): void {
  let at = skipSpace(text, text.indexOf('{', from) + 1)
  while (text.charCodeAt(at) === QUOTE) {
    const key_end = endOfString(text, at)
    const written = text.slice(at + 1, key_end - 1)
    const key = written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written
    const value_from = skipSpace(text, text.indexOf(':', key_end) + 1)
    const value_to = endOfValue(text, value_from)
    visit(key, { from: value_from, to: value_to })
    const behind = skipSpace(text, value_to)
    if (text.charCodeAt(behind) !== COMMA) return
    at = skipSpace(text, behind + 1)
  }
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
