/** How long flushes must have been slower, or faster, in ms, until most of that is in what is known of them. */
const SETTLES_MS = 250
/** What the newest flush counts at least, so that a bad moment is forgotten after some quick ones. */
const NEWEST_COUNTS_MIN = 0.02

/** How long a flush takes of late, whosever it is. */
export class Pace {
  flush_ms = 0

  constructor(private readonly flushes_max: number) {}

  /**
   * Takes note of how long one took. It counts by its part of the flushes' time, and not by their number: what stops
   * all commits for a moment is no overload.
   */
  flushed(ms: number): void {
    const weight = Math.max(-Math.expm1(-ms / (this.flushes_max * SETTLES_MS)), NEWEST_COUNTS_MIN)
    this.flush_ms += (ms - this.flush_ms) * weight
  }
}
