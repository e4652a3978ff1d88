import { FairQueue, Quota } from '../../fairness/fair_queue.js'

/**
 * Requests that a turn of the event loop takes in. All that arrived meanwhile waits for a turn to end, ends of flushes
 * among it: with 16, appends had a twentieth more throughput than with all that had arrived; with 4 less. After a long
 * turn it is more: refusing thousands takes long, and left hardly anything to be taken in.
 */
export const TAKEN_A_TURN = 16
/** What waited to be taken in for longer, in ms, is late. */
export const LATE_MS = 100
/** So many may wait in any case: what few callers have under way is no overload, however slow. */
export const HELD_MIN = 250
/** A crowd that passes is served: nobody is refused before requests have been late for so many ms without a break. */
export const PATIENCE_MS = 250

interface Held<T> {
  item: T
  since: number
}

/** Stands for whichever stranger is next. */
const STRANGER = Symbol('stranger')

/**
 * Which requests are taken in when. Callers take turns, so that one who sends very much keeps the others waiting for a
 * turn and no longer. When requests have been late for a while, there is more to do than can be done: those of whoever
 * has most of them waiting are refused.
 */
export class Intake<T> {
  private readonly held = new FairQueue<Held<T> | typeof STRANGER>()
  /** Strangers have the turns of one caller, and share these by where they come from. */
  private readonly strangers = new FairQueue<Held<T>>()
  private readonly quota = new Quota(TAKEN_A_TURN)
  private taken = 0
  /** When requests began to be late, as long as they are. */
  private late_since: number | undefined

  constructor(
    private readonly options: {
      take: (item: T) => void
      /** Whose it is, where that is known; strangers count as one. */
      callerOf: (item: T) => string | undefined
      /** Where a stranger's comes from. */
      addressOf: (item: T) => string
      /** The time in ms. */
      now: () => number
    },
  ) {}

  /** Takes a request in, at once or in a later turn. Gives false if it is refused. */
  offer(item: T): boolean {
    const { take, callerOf, addressOf, now } = this.options
    if (this.held.size === 0 && this.taken < TAKEN_A_TURN) {
      this.taken += 1
      take(item)
      return true
    }
    const caller = callerOf(item)
    const since = now()
    const address = caller === undefined ? addressOf(item) : undefined
    const isQuiet = () =>
      this.held.isQuiet(caller) || (address !== undefined && this.strangers.isQuiet(address))
    if (this.isOverloaded(since) && !isQuiet()) return false
    if (address !== undefined) this.strangers.add(address, { item, since })
    this.held.add(caller, address === undefined ? { item, since } : STRANGER)
    return true
  }

  /** Ends a turn and takes in what the next may of what waits. Gives whether more does, so that there must be another. */
  nextTurn(): boolean {
    this.taken = 0
    const now = this.options.now()
    let isLate = false
    for (const most = this.quota.turn(now); this.taken < most; this.taken += 1) {
      const next = this.held.next()
      const held = next === STRANGER ? this.strangers.next() : next
      if (!held) break
      if (now - held.since > LATE_MS) isLate = true
      this.options.take(held.item)
    }
    this.late_since = isLate ? (this.late_since ?? now) : undefined
    if (this.held.size > 0) return true
    this.quota.rest()
    this.taken = 0
    return false
  }

  private isOverloaded(now: number): boolean {
    const { late_since } = this
    return late_since !== undefined && now - late_since > PATIENCE_MS && this.held.size >= HELD_MIN
  }
}
