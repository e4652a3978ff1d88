import { Backlog } from './backlog.js'
import { cutFlush } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

/** Of the requests that were under way, those whose successors a flush waits for. Who has left does not come. */
const GATHERED = 0.9
/** Flushes of one project that may be in flight at once. */
const FLIGHTS_MAX = 2

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── stored ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. Where a full flush of other sessions waits, it goes out beside the one in flight: waiting would make it
 * no larger, and this process can read and answer the one while the database stores the other. A session has one
 * flush in flight, so its requests keep their order. Between two flushes a lane may gather: those who were just
 * answered mostly have their next request ready, and a flush costs what dozens of entries cost.
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
  /** What waits of other sessions, once it was looked for. */
  private beside: Backlog | undefined
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
    if (!this.inFlight.has(pending.request.session_id)) this.beside?.add(pending)
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.flights === 0 && !this.gathering
  }

  /** ms that one more request would wait for its flush to begin, as far as can be told. */
  get wait_ms(): number {
    return this.backlog.wait_ms / Math.max(this.flights, 1)
  }

  /** Whether enough waits for a turn. `mayDouble`: there is room for a flush beside one in flight. */
  wantsTurn(mayDouble: boolean): boolean {
    if (this.waiting.length === 0 || this.isReady) return false
    if (this.flights > 0) return mayDouble && this.flights < FLIGHTS_MAX && this.hasFlushBeside
    return !this.gathering || this.waiting.length >= this.gathered || this.backlog.isFlush
  }

  /** Whether a full flush of sessions that are not in flight waits. What was given up since is counted too. */
  private get hasFlushBeside(): boolean {
    if (!this.backlog.isFlush) return false
    if (!this.beside) {
      this.beside = new Backlog()
      for (const pending of this.waiting)
        if (!this.inFlight.has(pending.request.session_id)) this.beside.add(pending)
    }
    return this.beside.isFlush
  }

  /** Takes what the next flush stores; nothing where all that waited was given up, or is of sessions in flight. */
  depart(): PendingAppend[] {
    clearTimeout(this.gathering)
    this.gathering = undefined
    this.beside = undefined
    const { taken, deferred } = cutFlush(this.waiting, this.inFlight)
    this.waiting = deferred
    if (taken.length > 0) this.flights += 1
    for (const { request } of taken) this.inFlight.add(request.session_id)
    return taken
  }

  /** The database is done with a flush, after so many ms. */
  arrive(taken: readonly PendingAppend[], ms: number): void {
    this.backlog.flushed(taken, ms)
    this.flights -= 1
    this.beside = undefined
    for (const { request } of taken) this.inFlight.delete(request.session_id)
  }

  /** Has the next flush wait for about as many as were under way at the end of this one, for so many ms at most. */
  gather(taken: readonly PendingAppend[], ms: number, onOver: () => void): void {
    // While another is in flight, its end is what the next one waits for.
    if (this.flights > 0) return
    const gathered = Math.floor(GATHERED * (taken.length + this.waiting.length))
    if (gathered <= Math.max(this.waiting.length, 1)) return
    this.gathered = gathered
    this.gathering = setTimeout(() => {
      this.gathering = undefined
      onOver()
    }, ms)
  }
}
