/** What waits, by whose it is: owners take turns, and what belongs to one keeps its order. */
export class FairQueue<T> {
  /** In the order of turns. */
  private readonly waitingOf = new Map<unknown, T[]>()
  size = 0

  add(owner: unknown, item: T): void {
    const waiting = this.waitingOf.get(owner)
    if (waiting) waiting.push(item)
    else this.waitingOf.set(owner, [item])
    this.size += 1
  }

  /** Takes what is next, undefined when nothing waits. */
  next(): T | undefined {
    for (const [owner, waiting] of this.waitingOf) {
      const item = waiting.shift()
      this.size -= 1
      // A Map keeps the order of insertion: who had a turn goes to its end.
      this.waitingOf.delete(owner)
      if (waiting.length > 0) this.waitingOf.set(owner, waiting)
      return item
    }
    return undefined
  }

  /** Whether far less waits of an owner than of the others. */
  isQuiet(owner: unknown): boolean {
    const own = this.waitingOf.get(owner)?.length ?? 0
    return own < this.size / Math.max(this.waitingOf.size, 1) / 2
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
