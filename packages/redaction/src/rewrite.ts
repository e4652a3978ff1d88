import { isBytes, textInBase64 } from './base64.js'
import { DETECTOR_NUMBERS } from './detectors.js'
import { Draft } from './draft.js'
import { type KindOfMarks, type Mark, Marks } from './marks.js'
import { digitsOf, isCard } from './personal.js'
import type { ReadyRule } from './rules.js'
import { type Deed, mayHold, type Scanner, scan, scannerOfFitting } from './scan.js'

/** A text with marks in place of what was found. */
export interface Rewritten {
  /** Each as often as it stands in the text. */
  readonly marks: readonly Mark[]
  readonly kinds: readonly KindOfMarks[]
  /** With each mark as it is called. */
  text(named: (mark: Mark) => string): string
}

/** Why nothing may be written: where, and of what. */
export interface Refused {
  refused: { pointer: string; name: string }
}

export interface RewriteOptions {
  rules: readonly ReadyRule[]
  /**
   * The parsed text, if it is a request: rules may be for some of its entries, and patterns leave alone what only the
   * service reads. Otherwise it is an answer.
   */
  request?: unknown
  /** Whether messages get the counts of what was found in them, as `meta.redacted`. */
  counts?: boolean
  /** Whether long strings of base64 are hidden whatever they hold. */
  hidesBytes?: boolean
  /** So many values get marks of their own to be numbered, those that come first. Absent: all. */
  numbered_max?: number
}

/** Containers in containers; what is stored has fewer. */
const DEPTH_MAX = 1_100
const CARD_DIGITS_MIN = 14
/** Of numbers that may be one of a card: longer ones have more zeros than anybody writes. */
const NUMBER_LENGTH_MAX = 40
/** With its quotes; patterns find less than detectors. */
const STRING_LENGTH_MIN = 3
/** How the API names its members. */
const API_NAME = /^[A-Za-z_]{1,64}$/
/** Members of an entry that its rules are for. */
const CONTENT: ReadonlySet<string> = new Set(['data', 'blob', 'meta'])
/** Members of requests that hold what is no entry's, and yet the caller's. */
const FREE: ReadonlySet<string> = new Set([
  'configs',
  'configs_patch',
  'meta',
  'call',
  'data',
  'blob',
  'answer',
  // What people read. Names that tell things apart (of users, keys, owners, types) are none of them.
  'text',
  'options',
  'by',
  'reason',
])

/** An id, or a time as the API writes it. */
const OURS =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|[0-9a-f]{64})$/

const OURS_LENGTH_MAX = 64

interface Entry {
  kind: 'event' | 'message'
  type: string | undefined
  role: string | undefined
}

interface Context {
  entry: Entry | undefined
  /** Whether patterns are for it. */
  isFree: boolean
  /** How long the path is at the content of the entry; -1: outside. */
  root: number
  session_id: string | undefined
  scanner: Scanner
  hasPointers: boolean
}

class Refusal {
  constructor(readonly refused: { pointer: string; name: string }) {}
}

class TooDeep {}

/**
 * Rewrites JSON by rules: values, names of members, JSON and text in base64 inside of strings, and numbers of cards
 * that are numbers. Undefined: nothing was found. The rest of the text stays as it is, to the character.
 */
export function rewriteJson(text: string, options: RewriteOptions): Rewritten | Refused | undefined {
  const walk = new Walk(text, options)
  try {
    walk.whole()
  } catch (thrown) {
    if (thrown instanceof Refusal) return { refused: thrown.refused }
    throw thrown
  }
  return walk.rewritten()
}

/**
 * Rewrites a part of an answer, which begins and ends outside of strings. Bytes in base64, which cannot be looked
 * through, are hidden. Undefined: nothing was found.
 */
export function rewriteFragment(
  text: string,
  rules: readonly ReadyRule[],
  numbered_max = Number.POSITIVE_INFINITY,
): Rewritten | undefined {
  const walk = new Walk(text, { rules, hidesBytes: true, numbered_max })
  walk.fragment()
  return walk.rewritten()
}

class Walk {
  private readonly made: Marks
  readonly draft: Draft
  /** So far the text is in the draft, or replaced. */
  private last = 0
  private readonly path: Array<string | number> = []
  /** Of the message that is walked through: how often what was found. */
  private counts: Map<string, number> | undefined
  /** Where its meta ends. */
  private meta_end: number | undefined
  private isMetaEmpty = false
  private isChanged = false

  constructor(
    private readonly text: string,
    private readonly options: RewriteOptions,
    private readonly depth = 0,
    private readonly outer?: { context: Context; path: Array<string | number>; made: Marks },
  ) {
    this.made = outer?.made ?? new Marks(options.numbered_max)
    this.draft = new Draft(text, this.made)
  }

  whole(): void {
    if (this.outer) this.path.push(...this.outer.path)
    const { request } = this.options
    const context = this.outer?.context ?? this.contextOf(undefined, request === undefined, -1, undefined)
    this.value(0, request, context, this.depth)
  }

  fragment(): void {
    const { text } = this
    const context = this.contextOf(undefined, true, -1, undefined)
    for (let at = 0; at < text.length; ) {
      const code = text.charCodeAt(at)
      if (code === 0x22) {
        const end = endOfString(text, at)
        const isName = text.charCodeAt(this.skip(end)) === 0x3a
        if (isName) this.path[0] = nameOf(text, at, end)
        at = this.string(at, context, isName)
      } else at = code === 0x2d || (code >= 0x30 && code <= 0x39) ? this.scalar(at, context) : at + 1
    }
  }

  /** Undefined: nothing was found. */
  rewritten(): Draft | undefined {
    if (!this.isChanged) return undefined
    this.keepTo(this.text.length)
    return this.draft
  }

  private contextOf(
    entry: Entry | undefined,
    isFree: boolean,
    root: number,
    session_id: string | undefined,
  ): Context {
    const scanner = scannerOfFitting(this.options.rules, ({ rule: { where }, pattern }) => {
      if (pattern && !isFree) return false
      if (!where) return true
      if (!entry || root === -1) return false
      const { kinds, types, roles } = where
      return (
        (!kinds || kinds.includes(entry.kind)) &&
        (!types || types.includes(entry.type as string)) &&
        (!roles || roles.includes(entry.role as string))
      )
    })
    const hasPointers = scanner.rules.some(({ pointers }) => pointers)
    return { entry, isFree, root, session_id, scanner, hasPointers }
  }

  /** Walks through the value that begins here or after space; returns where it ends. */
  private value(start: number, node: unknown, context: Context, depth: number): number {
    const at = this.skip(start)
    const code = this.text.charCodeAt(at)
    if (code === 0x22) return this.string(at, context, false)
    if (code === 0x7b || code === 0x5b) {
      if (depth > DEPTH_MAX) throw new TooDeep()
      return code === 0x7b ? this.object(at, node, context, depth) : this.array(at, node, context, depth)
    }
    return this.scalar(at, context)
  }

  private skip(start: number): number {
    let at = start
    for (let code = this.text.charCodeAt(at); code <= 0x20; code = this.text.charCodeAt(++at));
    return at
  }

  private array(start: number, node: unknown, context: Context, depth: number): number {
    const items = Array.isArray(node) ? node : undefined
    let at = this.skip(start + 1)
    for (let index = 0; this.text[at] !== ']'; index++) {
      this.path.push(index)
      at = this.skip(this.value(at, items?.[index], context, depth + 1))
      this.path.pop()
      if (this.text[at] === ',') at = this.skip(at + 1)
    }
    return at + 1
  }

  private object(start: number, node: unknown, outer: Context, depth: number): number {
    const members = isObject(node) ? node : undefined
    const context = members && !outer.isFree ? this.aroundOf(members, outer) : outer
    const isEntry = context.entry !== outer.entry
    const counting = isEntry && context.entry!.kind === 'message' && this.options.counts
    if (counting) {
      this.counts = new Map()
      this.meta_end = undefined
    }
    let at = this.skip(start + 1)
    while (this.text[at] !== '}') {
      const end = endOfString(this.text, at)
      const name = nameOf(this.text, at, end)
      this.path.push(name)
      this.string(at, context, true)
      const inner = members && !context.isFree ? this.insideOf(name, context) : context
      const from = this.skip(this.skip(end) + 1)
      const isMeta = counting === true && name === 'meta' && this.text[from] === '{'
      at = this.value(from, members?.[name], inner, depth + 1)
      if (isMeta) {
        this.isMetaEmpty = this.text[this.skip(from + 1)] === '}'
        this.meta_end = this.placeAt(at - 1)
      }
      at = this.skip(at)
      this.path.pop()
      if (this.text[at] === ',') at = this.skip(at + 1)
    }
    if (counting) this.fillIn(at)
    return at + 1
  }

  /** What an object of a request says of what is inside of it. */
  private aroundOf(members: Record<string, unknown>, outer: Context): Context {
    const { type, blob, data, session_id } = members
    const named = typeof session_id === 'string' ? session_id.toLowerCase() : outer.session_id
    const isMessage = isObject(blob)
    const isEvent = !isMessage && typeof type === 'string' && isObject(data)
    if (!isMessage && !isEvent)
      return named === outer.session_id ? outer : this.contextOf(outer.entry, false, -1, named)
    const role = isMessage && typeof blob.role === 'string' ? blob.role : undefined
    const entry: Entry = isMessage
      ? { kind: 'message', type: undefined, role }
      : { kind: 'event', type: type as string, role: undefined }
    return this.contextOf(entry, false, -1, named)
  }

  private insideOf(name: string, context: Context): Context {
    const { entry, session_id } = context
    if (entry && CONTENT.has(name)) return this.contextOf(entry, true, this.path.length, session_id)
    return FREE.has(name) ? this.contextOf(entry, true, -1, session_id) : context
  }

  /** Keeps the text up to here; returns the place, to which something may be added. */
  private placeAt(at: number): number {
    this.keepTo(at)
    return this.draft.place()
  }

  /** Adds the counts of a message to its meta; of members with the same name, the last one counts. */
  private fillIn(end: number): void {
    const { counts, meta_end } = this
    this.counts = undefined
    if (!counts || counts.size === 0) return
    const counted = [...counts].map(([name, count]) => [name.toLowerCase(), count])
    const redacted = `"redacted":${JSON.stringify(Object.fromEntries(counted))}`
    const added =
      meta_end === undefined ? `,"meta":{${redacted}}` : this.isMetaEmpty ? redacted : `,${redacted}`
    this.draft.fill(meta_end ?? this.placeAt(end), added)
  }

  private scalar(at: number, context: Context): number {
    let to = at
    for (let code = this.text.charCodeAt(to); isScalar(code); code = this.text.charCodeAt(++to));
    if (to - at >= CARD_DIGITS_MIN && to - at <= NUMBER_LENGTH_MAX) {
      const digits = digitsOf(this.text.slice(at, to))
      if (digits !== undefined && isCard(digits)) {
        const scanner = this.scannerFor(context, digits, false)
        const deed =
          (scanner.patterns.length > 0 ? firstDeed(digits, scanner) : undefined) ??
          scanner.deeds[DETECTOR_NUMBERS.card]
        if (deed) {
          this.keepTo(at)
          this.draft.literal('"')
          this.mark(deed, digits, context)
          this.draft.literal('"')
          this.last = to
        }
      }
    }
    return to
  }

  /** Walks through a string, or the name of a member; returns where it ends. */
  private string(at: number, context: Context, isName: boolean): number {
    const { text } = this
    const end = endOfString(text, at)
    if (end - at < STRING_LENGTH_MIN) return end
    const raw = text.slice(at + 1, end - 1)
    const scanner = this.scannerFor(context, raw, isName)
    if (scanner.rules.length === 0 || !(scanner.patterns.length > 0 || mayHold(raw))) return end
    const isPlain = !raw.includes('\\')
    const value = isPlain ? raw : (JSON.parse(text.slice(at, end)) as string)
    if (!isPlain && this.nested(at, end, value, context, scanner)) return end
    const hits = scan(value, scanner)
    if (hits.length === 0) {
      this.base64(at, end, value, context, scanner)
      return end
    }
    this.keepTo(at + 1)
    // What is written as it is stays where it is.
    const source = isPlain ? 0 : this.draft.source(value)
    const begin = isPlain ? at + 1 : 0
    let from = 0
    for (let index = 0; index < hits.length; index++) {
      const found = hits.from.at[index]!
      this.draft.keep(source, begin + from, begin + found)
      from = hits.to.at[index]!
      this.mark(scanner.deeds[hits.what.at[index]!]!, value.slice(found, from), context)
    }
    this.draft.keep(source, begin + from, begin + value.length)
    this.last = end - 1
    return end
  }

  /** Rewrites a string that is JSON by itself, as arguments of tools are. Returns whether it did. */
  private nested(at: number, end: number, value: string, context: Context, scanner: Scanner): boolean {
    if (!isJson(value)) return false
    const inner = new Walk(value, { rules: scanner.rules }, this.depth + 1, {
      context: { ...context, scanner, hasPointers: false, isFree: true },
      path: this.path,
      made: this.made,
    })
    try {
      inner.whole()
    } catch (thrown) {
      if (thrown instanceof TooDeep) return false
      throw thrown
    }
    const found = inner.rewritten()
    if (!found) return false
    this.keepTo(at + 1)
    this.draft.string(found)
    if (this.counts) for (const { kind } of found.marks) this.count(kind.name)
    this.isChanged = true
    this.last = end - 1
    return true
  }

  /** What is found in a text in base64 takes the whole of it along. */
  private base64(at: number, end: number, value: string, context: Context, scanner: Scanner): void {
    const inside = textInBase64(value)
    const deed = inside && firstDeed(inside.text, scanner)
    if (inside && deed) {
      this.keepTo(at + 1)
      this.draft.keep(this.draft.source(value), 0, inside.from)
      this.mark(deed, value.slice(inside.from), context)
    } else if (!inside && this.options.hidesBytes && !this.isOpaque() && isBytes(value)) {
      this.keepTo(at + 1)
      this.addMark(this.made.of('mask', 'ATTACHMENT', undefined, ''))
    } else return
    this.last = end - 1
  }

  /**
   * What looks through what stands here. Patterns leave alone what the API needs: the names of its members, and of answers
   * the ids, times and cursors.
   */
  private scannerFor({ scanner, hasPointers, root }: Context, raw: string, isName: boolean): Scanner {
    const { rules, patterns } = scanner
    const isApis = patterns.length > 0 && (isName ? API_NAME.test(raw) : this.isOurs(raw))
    if (!isApis && !hasPointers) return scanner
    const { path } = this
    const isInside = (tokens: string[]) =>
      tokens.every((token, index) => token === String(path[root + index]))
    return scannerOfFitting(
      rules,
      ({ pattern, pointers }) => !(pattern && isApis) && (!pointers || pointers.some(isInside)),
    )
  }

  private isOurs(raw: string): boolean {
    if (this.options.request !== undefined) return false
    return (raw.length <= OURS_LENGTH_MAX && OURS.test(raw)) || this.isOpaque()
  }

  /** Whether it is for the service alone, which takes it back as it is. */
  private isOpaque(): boolean {
    const name = this.path.at(-1)
    return name === 'next_cursor' || name === 'pin'
  }

  private mark({ action, name }: Deed, value: string, { session_id }: Context): void {
    if (action === 'refuse') throw new Refusal({ pointer: pointerTo(this.path), name })
    this.addMark(this.made.of(action, name, session_id, value))
    this.count(name)
  }

  private count(name: string): void {
    if (!this.counts) return
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  private addMark(mark: Mark): void {
    this.draft.mark(mark)
    this.isChanged = true
  }

  private keepTo(at: number): void {
    this.draft.keep(0, this.last, at)
    this.last = at
  }
}

function firstDeed(text: string, scanner: Scanner): Deed | undefined {
  const hits = scan(text, scanner)
  return hits.length > 0 ? scanner.deeds[hits.what.at[0]!] : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isScalar(code: number): boolean {
  // Digits, letters, and - + . of numbers; NaN at the end.
  return (
    (code >= 0x2b && code <= 0x39 && code !== 0x2c && code !== 0x2f) ||
    ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a)
  )
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let first = at
    while (text.charCodeAt(first - 1) === 0x5c) first--
    // Two backslashes are one that is written.
    if ((at - first) % 2 === 0) return at + 1
  }
}

function nameOf(text: string, from: number, to: number): string {
  const raw = text.slice(from + 1, to - 1)
  return raw.includes('\\') ? (JSON.parse(text.slice(from, to)) as string) : raw
}

function isJson(text: string): boolean {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '[') return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function pointerTo(path: ReadonlyArray<string | number>): string {
  return path.map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
