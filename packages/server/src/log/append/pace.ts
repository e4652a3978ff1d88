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
