import { Backlog } from './backlog.js'
import { cutFlush } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

/** Of the requests that were under way, those whose successors a flush waits for. Who has left does not come. */
const GATHERED = 0.9

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── stored ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. A project has one flush in flight, so the requests of a session keep their order. Between two flushes it
 * may gather: those who were just answered mostly have their next request ready, and a flush costs what dozens of
 * entries cost.
 */
export class Lane {
  readonly backlog = new Backlog()
  /** In the order of their arrival. */
  waiting: PendingAppend[] = []
  /** It stands in the order of turns. */
  isReady = false
  private isFlushing = false
  /** How many the next flush waits for, as long as the time for it lasts. */
  private gathered = 0
  private gathering: NodeJS.Timeout | undefined

  /** @param name what it is found by: the project, or without group commit the request */
  constructor(
    readonly name: unknown,
    readonly project_id: string,
  ) {}

  add(pending: PendingAppend): void {
    this.waiting.push(pending)
    this.backlog.add(pending)
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && !this.isFlushing && !this.gathering
  }

  get wantsTurn(): boolean {
    if (this.waiting.length === 0 || this.isFlushing || this.isReady) return false
    return !this.gathering || this.waiting.length >= this.gathered || this.backlog.isFlush
  }

  /** Takes what the next flush stores; nothing where all that waited was given up. */
  depart(): PendingAppend[] {
    clearTimeout(this.gathering)
    this.gathering = undefined
    const { taken, deferred } = cutFlush(this.waiting)
    this.waiting = deferred
    this.isFlushing = taken.length > 0
    return taken
  }

  /** The database is done with a flush, after so many ms. */
  arrive(taken: readonly PendingAppend[], ms: number): void {
    this.backlog.flushed(taken, ms)
    this.isFlushing = false
  }

  /** Has the next flush wait for about as many as were under way at the end of this one, for so many ms at most. */
  gather(taken: readonly PendingAppend[], ms: number, onOver: () => void): void {
    const gathered = Math.floor(GATHERED * (taken.length + this.waiting.length))
    if (gathered <= Math.max(this.waiting.length, 1)) return
    this.gathered = gathered
    this.gathering = setTimeout(() => {
      this.gathering = undefined
      onOver()
    }, ms)
  }
}
