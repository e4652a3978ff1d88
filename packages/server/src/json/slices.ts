import { endOfString } from '@annals/messages/json'

/**
 * Pieces of a JSON text as they were sent. What is stored and answered is cut out of the body by these, so that no
 * number or string of a caller's is read and written anew. The text must be valid JSON, which readJson has seen to.
 * Places in one text are passed around, and not pieces of it: reading a piece of a piece is slow.
 */

const QUOTE = 0x22
const COMMA = 0x2c

/** Where a value stands: `text.slice(from, to)`. */
export interface Slice {
  from: number
  to: number
}

/** The members of the object that begins at `from`: each key with the text of its value. Of a repeated key the last. */
export function memberTexts(text: string, from = 0): Map<string, string> {
  const members = new Map<string, string>()
  walkMembers(text, from, (key, value) => members.set(key, text.slice(value.from, value.to)))
  return members
}

/** Where the value of a member of the outermost object stands; undefined where there is none. */
export function memberSlice(text: string, name: string): Slice | undefined {
  let found: Slice | undefined
  walkMembers(text, 0, (key, value) => {
    if (key === name) found = value
  })
  return found
}

/** Where the elements of the array that begins at `from` stand, in order. */
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

/** Behind a number, true, false or null. */
function endOfLiteral(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === 0x7d || code === 0x5d || isSpace(code)) return at
  }
  return text.length
}
