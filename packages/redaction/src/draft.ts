import { Integers } from './integers.js'
import type { KindOfMarks, Mark, Marks } from './marks.js'

/** A text of which parts are made: another one, or some characters. */
interface Source {
  text: string
  /** How often its parts are written as strings of JSON, one inside of the other. */
  times: number
}

/** Of each part: its source, where it begins there, where it ends, and the mark after it, or NONE. */
const PART = 4
const NONE = -1
/** Parts that are put together at once, so that few strings are there at a time. */
const TOGETHER = 1024

/** A text with marks in it, as places in other texts: there may be a hundred thousand of them. */
export class Draft {
  private readonly sources: Source[]
  private readonly parts = new Integers()
  private readonly literals = new Map<string, number>()

  /** @param text source 0 */
  constructor(
    text: string,
    private readonly made: Marks,
  ) {
    this.sources = [{ text, times: 0 }]
  }

  get kinds(): readonly KindOfMarks[] {
    return this.made.kinds
  }

  /** Each as often as it stands in the text. */
  get marks(): Mark[] {
    return this.ids().map((id) => this.made.all[id]!)
  }

  /** A text that is not written as JSON yet; returns its number. */
  source(text: string): number {
    return this.sources.push({ text, times: 1 }) - 1
  }

  keep(source: number, from: number, to: number): void {
    if (from < to) this.add(source, from, to, NONE)
  }

  mark({ id }: Mark): void {
    this.add(0, 0, 0, id)
  }

  literal(text: string): void {
    let source = this.literals.get(text)
    if (source === undefined) {
      source = this.sources.push({ text, times: 0 }) - 1
      this.literals.set(text, source)
    }
    this.keep(source, 0, text.length)
  }

  /** Leaves a place that can be filled later; returns it. */
  place(): number {
    this.add(0, 0, 0, NONE)
    return this.parts.length - PART
  }

  fill(place: number, text: string): void {
    this.parts.at[place] = this.sources.push({ text, times: 0 }) - 1
    this.parts.at[place + 2] = text.length
  }

  /** Adds another one, as the content of a string. */
  string({ sources, parts }: Draft): void {
    const first = this.sources.length
    for (const { text, times } of sources) this.sources.push({ text, times: times + 1 })
    const { at, length } = parts
    for (let part = 0; part < length; part += PART)
      this.add(first + at[part]!, at[part + 1]!, at[part + 2]!, at[part + 3]!)
  }

  /** The text, with each mark as it is called. */
  text(named: (mark: Mark) => string): string {
    const { sources, made } = this
    const { at, length } = this.parts
    const names: string[] = []
    let text = ''
    let some = ''
    for (let part = 0; part < length; part += PART) {
      const source = sources[at[part]!]!
      let piece = source.text.slice(at[part + 1], at[part + 2])
      for (let time = 0; time < source.times; time++) piece = JSON.stringify(piece).slice(1, -1)
      some += piece
      const id = at[part + 3]!
      if (id !== NONE) {
        names[id] ??= named(made.all[id]!)
        some += names[id]
      }
      if (part % (PART * TOGETHER) !== 0) continue
      // Reading a character makes one string of what was added together.
      some.charCodeAt(0)
      text += some
      some = ''
    }
    return text + some
  }

  private ids(): number[] {
    const { at, length } = this.parts
    return Array.from(at.subarray(0, length)).filter((id, index) => index % PART === 3 && id !== NONE)
  }

  /** A mark may stand at the end of the part before it. */
  private add(source: number, from: number, to: number, id: number): void {
    const { parts } = this
    if (id !== NONE && from === to && parts.length > 0 && parts.at[parts.length - 1] === NONE) {
      parts.at[parts.length - 1] = id
      return
    }
    parts.push(source)
    parts.push(from)
    parts.push(to)
    parts.push(id)
  }
}
