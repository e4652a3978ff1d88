/** The estimate rests on the work of this long, and of at least two steps, so that it follows what the work is like now. */
const WINDOW_S = 30

/** Estimates how long work will take from how fast it went of late. Times are in seconds, by any clock. */
export class TimeLeft {
  private readonly steps: Array<{ at: number; done: number }>

  constructor(begun: number) {
    this.steps = [{ at: begun, done: 0 }]
  }

  /** Says that so much of the whole is done. */
  step(done: number, at: number): void {
    if (done <= this.steps.at(-1)!.done) return
    this.steps.push({ done, at })
    while (this.steps.length > 3 && this.steps[1]!.at < at - WINDOW_S) this.steps.shift()
  }

  /**
   * Seconds that are left of `total`; undefined where nothing can be said. The time since the last step counts as time
   * in which nothing was done: while a step takes longer than those before it, the estimate grows.
   */
  left(total: number, at: number): number | undefined {
    const first = this.steps[0]!
    const { done } = this.steps.at(-1)!
    if (this.steps.length < 2 || done >= total) return undefined
    return ((total - done) * (at - first.at)) / (done - first.done)
  }
}
