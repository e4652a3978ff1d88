/** The estimate uses these last seconds, and at least two steps, so it follows the current speed. */
const WINDOW_S = 30

/** Estimates the remaining time of work from its recent speed. Times are in seconds, by any clock. */
export class TimeLeft {
  private readonly steps: Array<{ at: number; done: number }>

  constructor(begun: number) {
    this.steps = [{ at: begun, done: 0 }]
  }

  /** Records that so much of the whole is done. */
  step(done: number, at: number): void {
    if (done <= this.steps.at(-1)!.done) return
    this.steps.push({ done, at })
    while (this.steps.length > 3 && this.steps[1]!.at < at - WINDOW_S) this.steps.shift()
  }

  /**
   * Remaining seconds of `total`; undefined if unknown. The time since the last step counts as time without progress:
   * while a step takes longer than the previous ones, the estimate grows.
   */
  left(total: number, at: number): number | undefined {
    const first = this.steps[0]!
    const { done } = this.steps.at(-1)!
    if (this.steps.length < 2 || done >= total) return undefined
    return ((total - done) * (at - first.at)) / (done - first.done)
  }
}
