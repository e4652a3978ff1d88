import { FLUSH_BYTES_MAX, FLUSH_ENTRIES_MAX } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

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
  flushed(taken: readonly PendingAppend[], ms: number): void {
    const entries = taken.reduce((sum, { request }) => sum + request.entries.length, 0)
    const bytes = taken.reduce((sum, pending) => sum + pending.bytes, 0)
    if (fullness(entries, bytes) < FULL_ENOUGH) return
    this.full_flush_ms = smoothed(this.full_flush_ms ?? ms, ms)
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

/** The average duration, with the newest flush included. */
function smoothed(before_ms: number, newest_ms: number): number {
  return before_ms + (newest_ms - before_ms) * NEWEST_COUNTS
}

/** How much of a flush's limits is used. */
function fullness(entries: number, bytes: number): number {
  return Math.max(entries / FLUSH_ENTRIES_MAX, bytes / FLUSH_BYTES_MAX)
}

/** Time constant of the average, in ms: after this much flush time, most of a change in speed has been taken in. */
const SETTLES_MS = 250
/** Least weight of the newest flush, so that a slow moment is forgotten after some quick ones. */
const NEWEST_COUNTS_MIN = 0.02

/** How long flushes take at present, over all projects. */
export class Pace {
  flush_ms = 0

  constructor(private readonly flushes_max: number) {}

  /**
   * Records a flush's duration. Its weight is its share of time, not of flushes: a moment in which all commits stall
   * is not overload.
   */
  flushed(ms: number): void {
    const weight = Math.max(-Math.expm1(-ms / (this.flushes_max * SETTLES_MS)), NEWEST_COUNTS_MIN)
    this.flush_ms += (ms - this.flush_ms) * weight
  }
}
