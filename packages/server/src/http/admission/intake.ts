import { FairQueue, Quota } from '../../fairness/fair_queue.js'

/**
 * Requests accepted per turn of the event loop. Everything else that arrived, such as the ends of flushes, waits for
 * the turn to end: with 16, appends had a twentieth more throughput than with all, and with 4 less. After a long turn
 * it is more, because refusing thousands takes long and would leave hardly any to be accepted.
 */
export const TAKEN_A_TURN = 16
/** So few in a turn that must be short, as long as none of them is late. */
const TAKEN_A_SHORT_TURN = 4
/** A request that waited longer than this, in ms, is late. */
export const LATE_MS = 100
/** So many may wait in any case: the requests of a few callers are no overload, however slow. */
export const HELD_MIN = 250
/** A short burst is served: nobody is refused before requests have been late for so many ms without a break. */
export const PATIENCE_MS = 250

interface Held<T> {
  item: T
  since: number
}

/** Stands for the next of the callers without a known key. */
const STRANGER = Symbol('stranger')

/**
 * Decides when requests are accepted. Callers take turns, so that one who sends very much delays the others by one
 * turn and no more. When requests have been late for a while, there is more work than can be done, and requests of
 * the caller with most of them waiting are refused.
 */
export class Intake<T> {
  private readonly held = new FairQueue<Held<T> | typeof STRANGER>()
  /** Callers without a known key share the turns of one caller, by address. */
  private readonly strangers = new FairQueue<Held<T>>()
  private readonly quota = new Quota(TAKEN_A_TURN)
  private taken = 0
  /** Since when requests have been late. */
  private late_since: number | undefined

  constructor(
    private readonly options: {
      take: (item: T) => void
      /** The caller, if known; all unknown callers count as one. */
      callerOf: (item: T) => string | undefined
      /** The address of an unknown caller. */
      addressOf: (item: T) => string
      /** The time in ms. */
      now: () => number
    },
  ) {}

  /** Accepts a request, now or in a later turn. Returns false if it is refused. */
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

  /**
   * Ends a turn and accepts what the next one may of what waits. Returns whether more waits, so that there must be
   * another. `isShort`: what is outside waits for the turns to end, so they do not make up for long ones.
   */
  nextTurn(isShort = false): boolean {
    this.taken = 0
    if (this.held.size === 0) {
      this.late_since = undefined
      return false
    }
    const now = this.options.now()
    let isLate = false
    const allowed = this.quota.turn(now)
    const short = this.late_since === undefined ? TAKEN_A_SHORT_TURN : TAKEN_A_TURN
    for (const most = isShort ? short : allowed; this.taken < most; this.taken += 1) {
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
