/** The middle one, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The smallest value that a share of all (0.99 for p99) does not exceed. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? Number.NaN
}
