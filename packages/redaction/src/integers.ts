const LENGTH_FIRST = 256

/** A list of integers outside of the heap: what collects garbage does not look through it. */
export class Integers {
  at = new Int32Array(LENGTH_FIRST)
  length = 0

  push(value: number): void {
    if (this.length === this.at.length) {
      const longer = new Int32Array(2 * this.length)
      longer.set(this.at)
      this.at = longer
    }
    this.at[this.length++] = value
  }
}
