import { Integers } from './integers.js'

/** A part of a text, and the number of what it is. */
export interface Span {
  from: number
  to: number
  what: number
}

/** Parts of a text. No objects: there may be a hundred thousand, and they would cost more than finding them. */
export class Spans {
  readonly from = new Integers()
  readonly to = new Integers()
  readonly what = new Integers()

  get length(): number {
    return this.from.length
  }

  clear(): void {
    this.from.length = 0
    this.to.length = 0
    this.what.length = 0
  }

  add(from: number, to: number, what: number): void {
    this.from.push(from)
    this.to.push(to)
    this.what.push(what)
  }

  all(): Span[] {
    return Array.from({ length: this.length }, (_, at) => this.span(at))
  }

  /** Of those that overlap, the first stays. @param before characters before the text, by which places are shifted */
  putInOrder(before: number): void {
    const { from, to, what } = this
    const order = this.order()
    let end = 0
    let kept = 0
    const [from_at, to_at, what_at] = order
      ? [from.at.slice(), to.at.slice(), what.at.slice()]
      : [from.at, to.at, what.at]
    for (let place = 0; place < from.length; place++) {
      const at = order ? order[place]! : place
      if (from_at[at]! < end) continue
      end = to_at[at]!
      from.at[kept] = from_at[at]! - before
      to.at[kept] = end - before
      what.at[kept++] = what_at[at]!
    }
    from.length = to.length = what.length = kept
  }

  /** Their places in the order of the text, longer ones first; undefined: they are in it. */
  private order(): Int32Array | undefined {
    const [from, to] = [this.from.at, this.to.at]
    const isBefore = (one: number, other: number) => from[one]! - from[other]! || to[other]! - to[one]!
    let isSorted = true
    for (let at = 1; at < this.length && isSorted; at++) isSorted = isBefore(at - 1, at) <= 0
    return isSorted ? undefined : Int32Array.from({ length: this.length }, (_, at) => at).sort(isBefore)
  }

  private span(at: number): Span {
    return { from: this.from.at[at]!, to: this.to.at[at]!, what: this.what.at[at]! }
  }
}
