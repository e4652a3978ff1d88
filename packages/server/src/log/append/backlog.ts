import { FLUSH_BYTES_MAX, FLUSH_ENTRIES_MAX } from './cut_flush.js'
import type { PendingAppend } from './pending_append.js'

/** The newest flush counts this much, all those before it the rest. */
const NEWEST_COUNTS = 0.3
/** A flush that is less full than this says little of how long a full one takes. */
const FULL_ENOUGH = 0.5

/**
 * What waits in one project's lane, and how long that will take: flushes to come, times what a full flush took of
 * late. A backlog that the next flush takes whole is never too long, so neither a single slow commit nor a lock that
 * somebody holds refuses anybody.
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

  /** Takes note of how long a flush took. */
  flushed(taken: readonly PendingAppend[], ms: number): void {
    const entries = taken.reduce((sum, { request }) => sum + request.entries.length, 0)
    const bytes = taken.reduce((sum, pending) => sum + pending.bytes, 0)
    if (fullness(entries, bytes) < FULL_ENOUGH) return
    this.full_flush_ms = smoothed(this.full_flush_ms ?? ms, ms)
  }

  /** Whether it fills a flush. */
  get isFlush(): boolean {
    return fullness(this.entries, this.bytes) >= 1
  }

  /** ms that one more request would wait for its flush to begin, as far as can be told. */
  get wait_ms(): number {
    return Math.floor(fullness(this.entries, this.bytes)) * (this.full_flush_ms ?? 0)
  }
}

/** How long flushes took, with the newest one in it. */
function smoothed(before_ms: number, newest_ms: number): number {
  return before_ms + (newest_ms - before_ms) * NEWEST_COUNTS
}

/** Of a flush's bounds, the part that is taken up. */
function fullness(entries: number, bytes: number): number {
  return Math.max(entries / FLUSH_ENTRIES_MAX, bytes / FLUSH_BYTES_MAX)
}
