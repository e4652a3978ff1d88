import { Backlog } from './backlog.js'
import { cutFlush } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

/**
 * One project's share of the appender.
 *
 *   idle ── a request arrives ──▶ ready ── its turn comes ──▶ flushing ── stored ──▶ idle, or ready again
 *
 * Requests that arrive while a flush is in flight wait for it and go together in the next one: the commit itself is
 * the timer. A project has one flush in flight, so the requests of a session keep their order.
 */
export class Lane {
  readonly backlog = new Backlog()
  /** In the order of their arrival. */
  waiting: PendingAppend[] = []
  /** It stands in the order of turns. */
  isReady = false
  private isFlushing = false

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
    return this.waiting.length === 0 && !this.isFlushing
  }

  get wantsTurn(): boolean {
    return this.waiting.length > 0 && !this.isFlushing && !this.isReady
  }

  /** Takes what the next flush stores; nothing where all that waited was given up. */
  depart(): PendingAppend[] {
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
}
