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

/** Visits the values of an array at their positions. A visit gives the position behind its value, as the whole does. */
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
