import { Backlog } from './backlog.js'
import { cutFlush } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

/** Flushes of one project that may be in flight at once. */
const FLIGHTS_MAX = 2
/** A second flush costs a commit of its own, which fewer requests than these do not make good. */
const SECOND_FLUSH_MIN = 24

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── answered ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. When as many wait as are in flight already, a second flush goes out beside the first, of other sessions:
 * the one is read and answered here while the other is stored. A session has one flush in flight, so its requests
 * keep their order.
 */
export class Lane {
  readonly backlog = new Backlog()
  /** In the order of their arrival. */
  waiting: PendingAppend[] = []
  /** It stands in the order of turns. */
  isReady = false
  flights = 0
  /** The sessions of its flushes in flight. */
  private readonly inFlight = new Set<string>()
  /** How many of those that wait are of other sessions. */
  private free = 0

  /** @param name what it is found by: the project, or without group commit the request */
  constructor(
    readonly name: unknown,
    readonly project_id: string,
  ) {}

  add(pending: PendingAppend): void {
    this.waiting.push(pending)
    this.backlog.add(pending)
    if (!this.inFlight.has(pending.request.session_id)) this.free += 1
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.flights === 0
  }

  /** Whether enough waits for a turn. `mayDouble`: a flush beside one in flight keeps no other project waiting. */
  wantsTurn(mayDouble: boolean): boolean {
    if (this.isReady || this.waiting.length === 0) return false
    if (this.flights === 0) return true
    return (
      mayDouble && this.flights < FLIGHTS_MAX && this.free >= Math.max(this.inFlight.size, SECOND_FLUSH_MIN)
    )
  }

  /** Takes what the next flush stores; nothing where all that waits is of sessions in flight. */
  depart(): PendingAppend[] {
    const { taken, deferred } = cutFlush(this.waiting, this.inFlight)
    this.waiting = deferred
    if (taken.length > 0) this.flights += 1
    for (const { request } of taken) this.inFlight.add(request.session_id)
    this.countFree()
    return taken
  }

  /** The database is done with a flush, after so many ms. */
  arrive(taken: readonly PendingAppend[], ms: number): void {
    this.backlog.flushed(taken, ms)
    this.flights -= 1
    for (const { request } of taken) this.inFlight.delete(request.session_id)
    this.countFree()
  }

  private countFree(): void {
    this.free = 0
    for (const { request } of this.waiting) if (!this.inFlight.has(request.session_id)) this.free += 1
  }
}
