/** How long a turn of the event loop may go on taking requests in, in ms, once it has been too long for a while. */
const TURN_MS = 50
/** So many requests are taken in a turn in any case: what few callers have under way is no overload, however slow. */
const TAKEN_MIN = 250
/** A crowd that passes is served: turns are cut only once they have been too long for so many ms without a break. */
const PATIENCE_MS = 250

/**
 * What one turn of the event loop takes in. All that arrived waits for the turn to come round, so a turn that is too
 * long is what makes everybody wait. When turns have been too long for a while, each takes in what it can in its
 * time; beyond that only callers of whom it has taken less than of others, so that a quiet one does not notice.
 */
export class Turns {
  private began_at: number | undefined
  private ended_at = Number.NEGATIVE_INFINITY
  private taken = 0
  private known = 0
  private readonly takenOf = new Map<string, number>()
  /** When turns began to be too long, as long as they are. */
  private long_since: number | undefined

  /** A request arrived. Gives true if it is the first of a turn, which somebody must then end. */
  begin(now: number): boolean {
    if (this.began_at !== undefined) return false
    this.began_at = now
    // Who had time to wait in between is not overloaded.
    if (now - this.ended_at > TURN_MS) this.long_since = undefined
    return true
  }

  /** Whether the turn has taken in what it can in its time. */
  isFull(now: number): boolean {
    return (
      this.taken >= TAKEN_MIN &&
      now - this.began_at! > TURN_MS &&
      now - (this.long_since ?? this.began_at!) > PATIENCE_MS
    )
  }

  /** Whether the turn has taken far less of a caller than of others. Undefined: of all together who are not known. */
  isQuiet(caller: string | undefined): boolean {
    const strangers = Math.max(this.taken - this.known, 0)
    const own = caller === undefined ? strangers : (this.takenOf.get(caller) ?? 0)
    return own < this.taken / Math.max(this.takenOf.size + Math.sign(strangers), 1) / 2
  }

  /** Takes a request in; `know` says whose it is, when that is known. */
  take(): void {
    this.taken += 1
  }

  know(caller: string): void {
    this.known += 1
    this.takenOf.set(caller, (this.takenOf.get(caller) ?? 0) + 1)
  }

  end(now: number): void {
    if (now - this.began_at! <= TURN_MS) this.long_since = undefined
    else this.long_since ??= this.began_at
    this.began_at = undefined
    this.ended_at = now
    this.taken = 0
    this.known = 0
    this.takenOf.clear()
  }
}
