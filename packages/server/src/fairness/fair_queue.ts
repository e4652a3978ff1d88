/** What waits, by whose it is: owners take turns, and what belongs to one keeps its order. */
export class FairQueue<T> {
  /** In the order of turns. */
  private readonly waiting = new Map<unknown, T[]>()
  size = 0

  add(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    if (waiting) waiting.push(item)
    else this.waiting.set(owner, [item])
    this.size += 1
  }

  /** Takes what is next of the owners that may have a turn with it; undefined when nothing of theirs waits. */
  next(mayHaveTurn?: (owner: unknown, item: T) => boolean): T | undefined {
    for (const [owner, waiting] of this.waiting) {
      if (mayHaveTurn && !mayHaveTurn(owner, waiting[0]!)) continue
      const item = waiting.shift()
      this.size -= 1
      // A Map keeps the order of insertion: who had a turn goes to its end.
      this.waiting.delete(owner)
      if (waiting.length > 0) this.waiting.set(owner, waiting)
      return item
    }
    return undefined
  }

  /** Takes out one item that waits. */
  remove(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    const place = waiting?.indexOf(item) ?? -1
    if (place < 0) return
    waiting!.splice(place, 1)
    this.size -= 1
    if (waiting!.length === 0) this.waiting.delete(owner)
  }

  /** How much of an owner waits. */
  waitingOf(owner: unknown): number {
    return this.waiting.get(owner)?.length ?? 0
  }

  /** Whether far less waits of an owner than of the others. */
  isQuiet(owner: unknown): boolean {
    return this.waitingOf(owner) < this.size / Math.max(this.waiting.size, 1) / 2
  }
}

/**
 * How much one turn of the event loop does of what waits. A long turn, of work that cannot wait, makes up for it: so
 * many more for each further ms that it took, or next to nothing would be done besides that work.
 */
export class Quota {
  private turned_at = Number.POSITIVE_INFINITY

  constructor(private readonly a_turn: number) {}

  /** Begins a turn at a time in ms; gives how many it does. */
  turn(now: number): number {
    const took_ms = now - this.turned_at
    this.turned_at = now
    return this.a_turn * Math.max(1, Math.floor(took_ms))
  }

  /** No turn comes for now: what lies between is none. */
  rest(): void {
    this.turned_at = Number.POSITIVE_INFINITY
  }
}
