/** Lines of the trees of a file that are remembered to recognize a prompt that was rewound. */
export const TREE_MAX = 20_000

/** Where a line stands in the tree that the lines of a session form. */
interface TreeLine {
  uuid: string
  parent: string | null
  is_prompt: boolean
  /** The id of its message, a UUID; undefined if it is none. */
  message_id: string | undefined
}

/** What a prompt left behind: the ids of messages, and the names of all its lines. */
export interface Left {
  ids: string[]
  names: number[]
}

const LINES_MIN = 64
/** Which digits of a UUID are which number. */
const PARTS = [
  [0, 0, 8],
  [1, 9, 18],
  [2, 19, 28],
  [3, 28, 36],
] as const
const IS_PROMPT = 1
const HAS_MESSAGE = 2
const IS_LEFT = 4
/** The name of the parent of a line without one. */
const NOTHING = 0

/** The lines of a session, outside of the heap: objects that live as long as these would fill it with garbage. */
export class Tree {
  size = 0
  private has_forgotten = false
  private lines = linesFor(LINES_MIN)
  /** By the last bits of a name, or after that: the number of its line, and 1. */
  private places = new Int32Array(2 * LINES_MIN)

  add({ uuid, parent, is_prompt, message_id }: TreeLine): void {
    const name = nameOf(uuid)
    if (this.placeOf(name) !== -1) return
    if (this.size >= TREE_MAX) this.keepFrom(TREE_MAX / 2, this.lines.names.length)
    else if (this.size === this.lines.names.length) this.keepFrom(0, 2 * this.size)
    const { lines, size } = this
    lines.names[size] = name
    lines.parents[size] = parent === null ? NOTHING : nameOf(parent)
    lines.marks[size] = (is_prompt ? IS_PROMPT : 0) | (message_id === undefined ? 0 : HAS_MESSAGE)
    for (const [part, from, to] of PARTS)
      lines.message_ids[4 * size + part] = Number.parseInt(
        message_id?.slice(from, to).replace('-', '') ?? '0',
        16,
      )
    this.size += 1
    this.place(name, size)
  }

  /** Marks what a prompt after this line leaves behind. */
  leave(parent: string | null): Left {
    const { names, parents, marks } = this.lines
    const from = parent === null ? NOTHING : nameOf(parent)
    const left: Left = { ids: [], names: [] }
    if (this.size === 0 || names[this.size - 1] === from) return left
    const ancestors = new Set<number>()
    for (let name = from; name !== NOTHING && !ancestors.has(name); ) {
      const at = this.placeOf(name)
      // Lines that were forgotten stand before all that is left. If one is missing, nobody knows where the prompt stands.
      if (at === -1 && name !== from && this.has_forgotten) break
      if (at === -1) return left
      ancestors.add(name)
      name = parents[at]!
    }
    let at = this.placeOf(from) + 1
    while (at < this.size && (!(marks[at]! & IS_PROMPT) || ancestors.has(names[at]!))) at += 1
    for (; at < this.size; at++) {
      if (ancestors.has(names[at]!) || marks[at]! & IS_LEFT) continue
      if (marks[at]! & HAS_MESSAGE) left.ids.push(this.messageId(at))
      left.names.push(names[at]!)
      marks[at]! |= IS_LEFT
    }
    return left
  }

  isLeft(uuid: string | null): boolean {
    const at = uuid === null ? -1 : this.placeOf(nameOf(uuid))
    return at !== -1 && (this.lines.marks[at]! & IS_LEFT) !== 0
  }

  /** Nobody left it after all. */
  returnTo({ names }: Left): void {
    for (const at of names.map((name) => this.placeOf(name))) if (at !== -1) this.lines.marks[at]! &= ~IS_LEFT
  }

  private messageId(at: number): string {
    const parts = [...this.lines.message_ids.subarray(4 * at, 4 * at + 4)]
    const digits = parts.map((part) => part.toString(16).padStart(8, '0')).join('')
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }

  /** The number of a line, or -1. */
  private placeOf(name: number): number {
    const last = this.places.length - 1
    for (let slot = name & last; ; slot = (slot + 1) & last) {
      const at = this.places[slot]! - 1
      if (at === -1 || this.lines.names[at] === name) return at
    }
  }

  private place(name: number, at: number): void {
    const last = this.places.length - 1
    let slot = name & last
    while (this.places[slot] !== 0) slot = (slot + 1) & last
    this.places[slot] = at + 1
  }

  /** Forgets the first lines, and makes room for so many. */
  private keepFrom(first: number, count: number): void {
    const { names, parents, marks, message_ids } = this.lines
    this.has_forgotten ||= first > 0
    this.lines = linesFor(count)
    this.lines.names.set(names.subarray(first))
    this.lines.parents.set(parents.subarray(first))
    this.lines.marks.set(marks.subarray(first))
    this.lines.message_ids.set(message_ids.subarray(4 * first))
    this.places = new Int32Array(2 * count)
    this.size -= first
    for (let at = 0; at < this.size; at++) this.place(this.lines.names[at]!, at)
  }
}

function linesFor(count: number) {
  return {
    names: new Float64Array(count),
    parents: new Float64Array(count),
    marks: new Uint8Array(count),
    /** Four numbers a line. */
    message_ids: new Uint32Array(4 * count),
  }
}

/** A number of 52 bits for a text, and not `NOTHING`. */
function nameOf(text: string): number {
  let low = 0x811c9dc5
  let high = 0x9e3779b1
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ code, 0x85ebca6b)
  }
  return (high >>> 12) * 0x1_0000_0000 + (low >>> 0) + 1
}
