/** A queue by owner: owners take turns, and each owner's items keep their order. */
export class FairQueue<T> {
  /** In order of turns. */
  private readonly waiting = new Map<unknown, T[]>()
  size = 0

  add(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    if (waiting) waiting.push(item)
    else this.waiting.set(owner, [item])
    this.size += 1
  }

  /** Takes the next item of the first owner that may have a turn with it; undefined if there is none. */
  next(mayHaveTurn?: (owner: unknown, item: T) => boolean): T | undefined {
    for (const [owner, waiting] of this.waiting) {
      if (mayHaveTurn && !mayHaveTurn(owner, waiting[0]!)) continue
      const item = waiting.shift()
      this.size -= 1
      // A Map keeps insertion order: an owner that had its turn goes to the end.
      this.waiting.delete(owner)
      if (waiting.length > 0) this.waiting.set(owner, waiting)
      return item
    }
    return undefined
  }

  /** Lets all others that wait go before an owner. */
  moveToEnd(owner: unknown): void {
    const waiting = this.waiting.get(owner)
    if (!waiting) return
    this.waiting.delete(owner)
    this.waiting.set(owner, waiting)
  }

  remove(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    const place = waiting?.indexOf(item) ?? -1
    if (place < 0) return
    waiting!.splice(place, 1)
    this.size -= 1
    if (waiting!.length === 0) this.waiting.delete(owner)
  }

  waitingOf(owner: unknown): number {
    return this.waiting.get(owner)?.length ?? 0
  }

  /** Whether an owner has far less waiting than the others. */
  isQuiet(owner: unknown): boolean {
    return this.waitingOf(owner) < this.size / Math.max(this.waiting.size, 1) / 2
  }
}

/**
 * How much of the queue one turn of the event loop handles. A long turn, caused by work that cannot wait, is made up
 * for: each further ms that it took allows that many more, or next to nothing else would be done.
 */
export class Quota {
  private turned_at = Number.POSITIVE_INFINITY

  constructor(private readonly a_turn: number) {}

  /** Begins a turn at a time in ms; returns how many items it may handle. */
  turn(now: number): number {
    const took_ms = now - this.turned_at
    this.turned_at = now
    return this.a_turn * Math.max(1, Math.floor(took_ms))
  }

  /** No turn follows for now, so the time until the next one does not count. */
  rest(): void {
    this.turned_at = Number.POSITIVE_INFINITY
  }
}
