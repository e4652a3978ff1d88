import type { PendingAppend } from './append_request.js'
import { cutFlush, FLUSH_BYTES_MAX, FLUSH_ENTRIES_MAX, type Flight } from './cut_flush.js'

/** Weight of the newest flush in the average. */
const NEWEST_COUNTS = 0.3
/** Fuller flushes only: the others tell little about how long a full one takes. */
const FULL_ENOUGH = 0.5

/**
 * The backlog of one project's lane, and how long it will take: the number of flushes to come, times the recent
 * duration of a full flush. A backlog that fits into the next flush is never too long, so neither a single slow
 * commit nor a lock that somebody holds causes refusals.
 */
export class Backlog {
  requests = 0
  bytes = 0
  private entries = 0
  private full_flush_ms: number | undefined

  add(pending: PendingAppend): void {
    this.requests += 1
    this.bytes += pending.bytes
    this.entries += pending.request.entries.length
  }

  remove(pending: PendingAppend): void {
    this.requests -= 1
    this.bytes -= pending.bytes
    this.entries -= pending.request.entries.length
  }

  /** Records how long a flush took. */
  flushed({ entries, bytes }: Flight, ms: number): void {
    if (fullness(entries, bytes) < FULL_ENOUGH) return
    const before_ms = this.full_flush_ms ?? ms
    this.full_flush_ms = before_ms + (ms - before_ms) * NEWEST_COUNTS
  }

  /** Whether the backlog fills a flush. */
  get isFlush(): boolean {
    return fullness(this.entries, this.bytes) >= 1
  }

  /** Expected wait of one more request for its flush to begin, in ms. */
  get wait_ms(): number {
    return Math.floor(fullness(this.entries, this.bytes)) * (this.full_flush_ms ?? 0)
  }
}

/** How much of a flush's limits is used. */
function fullness(entries: number, bytes: number): number {
  return Math.max(entries / FLUSH_ENTRIES_MAX, bytes / FLUSH_BYTES_MAX)
}

/** Share of the previous requests whose successors a flush waits for. Callers who have left do not come back. */
const GATHERED = 0.9
/** Flushes of one project that may be in flight at once. */
const FLIGHTS_MAX = 2

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── stored ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. A full flush of other sessions may go beside the one in flight: waiting would not make it larger, and
 * this process can read and answer one while the database stores the other. A session has one flush in flight, so its
 * requests keep their order. Between two flushes a lane may gather: callers that were just answered mostly have their
 * next request ready, and a flush costs as much as dozens of entries.
 */
export class Lane {
  readonly backlog = new Backlog()
  /** In the order of their arrival. */
  waiting: PendingAppend[] = []
  /** It is queued for its turn. */
  isReady = false
  flights = 0
  /** The sessions of its flushes in flight. */
  private readonly inFlight = new Set<string>()
  /** The waiting requests of other sessions, once they were counted. */
  private beside: Backlog | undefined
  /** How many requests the next flush waits for, while its time lasts. */
  private gathered = 0
  private gathering: NodeJS.Timeout | undefined

  /** @param name its key: the project, or without group commit the request */
  constructor(
    readonly name: unknown,
    readonly project_id: string,
  ) {}

  add(pending: PendingAppend): void {
    this.waiting.push(pending)
    this.backlog.add(pending)
    if (this.beside && this.isFree(pending)) this.beside.add(pending)
  }

  /** Whether none of a request's sessions has a flush in flight. */
  private isFree({ request }: PendingAppend): boolean {
    if (!request.appends) return !this.inFlight.has(request.session_id)
    return !request.appends.some(({ session_id }) => this.inFlight.has(session_id))
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.flights === 0 && !this.gathering
  }

  /** Expected wait of one more request for its flush to begin, in ms. */
  get wait_ms(): number {
    return this.backlog.wait_ms / Math.max(this.flights, 1)
  }

  /** Whether there is enough for a turn. `mayDouble`: there is room for a flush beside the one in flight. */
  wantsTurn(mayDouble: boolean): boolean {
    if (this.waiting.length === 0 || this.isReady) return false
    if (this.flights > 0) return mayDouble && this.flights < FLIGHTS_MAX && this.hasFlushBeside
    return !this.gathering || this.waiting.length >= this.gathered || this.backlog.isFlush
  }

  /** Whether a full flush of sessions that are not in flight waits. Requests given up since are counted too. */
  private get hasFlushBeside(): boolean {
    if (!this.backlog.isFlush) return false
    if (!this.beside) {
      this.beside = new Backlog()
      for (const pending of this.waiting) if (this.isFree(pending)) this.beside.add(pending)
    }
    return this.beside.isFlush
  }

  /** Takes the requests of the next flush; none if all that waited was given up, or belongs to sessions in flight. */
  depart(): Flight {
    clearTimeout(this.gathering)
    this.gathering = undefined
    this.beside = undefined
    const { deferred, ...flight } = cutFlush(this.waiting, this.inFlight)
    this.waiting = deferred
    if (flight.taken.length > 0) this.flights += 1
    for (const session_id of flight.sessions) this.inFlight.add(session_id)
    return flight
  }

  /** The database has finished a flush, after so many ms. */
  arrive(flight: Flight, ms: number): void {
    this.backlog.flushed(flight, ms)
    this.flights -= 1
    this.beside = undefined
    for (const session_id of flight.sessions) this.inFlight.delete(session_id)
  }

  /**
   * Makes the next flush wait for about as many requests as were in flight at the end of this one, for at most so
   * many ms.
   */
  gather({ taken }: Flight, ms: number, onOver: () => void): void {
    // While another is in flight, the next one waits for its end.
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
