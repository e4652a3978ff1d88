import { endOfString } from './end_of_string.js'

/**
 * Pieces of a JSON text as they were sent. What is stored and answered is cut out of the body by these, so that no
 * number or string of a caller's is read and written anew. The text must be valid JSON, which readJson has seen to.
 */

/** The members of an object: each key with the text of its value. Of a repeated key the last counts. */
export function memberTexts(object: string): Map<string, string> {
  const members = new Map<string, string>()
  for (let at = skipSpace(object, object.indexOf('{') + 1); object[at] === '"'; ) {
    const key_end = endOfString(object, at)
    const key = JSON.parse(object.slice(at, key_end)) as string
    const from = skipSpace(object, object.indexOf(':', key_end) + 1)
    const to = endOfValue(object, from)
    members.set(key, object.slice(from, to))
    at = skipSpace(object, skipSpace(object, to) + 1)
  }
  return members
}

/** The texts of an array's elements, in order. */
export function elementTexts(array: string): string[] {
  const elements: string[] = []
  let at = skipSpace(array, array.indexOf('[') + 1)
  while (at < array.length && array[at] !== ']') {
    const to = endOfValue(array, at)
    elements.push(array.slice(at, to))
    const behind = skipSpace(array, to)
    if (array[behind] !== ',') break
    at = skipSpace(array, behind + 1)
  }
  return elements
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
  if (first === 0x22) return endOfString(text, from)
  if (first !== 0x7b && first !== 0x5b) return endOfLiteral(text, from)
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfString(text, at) - 1
    else if (code === 0x7b || code === 0x5b) depth++
    else if ((code === 0x7d || code === 0x5d) && --depth === 0) return at + 1
  }
  return text.length
}

/** Behind a number, true, false or null. */
function endOfLiteral(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x2c || code === 0x7d || code === 0x5d || isSpace(code)) return at
  }
  return text.length
}
