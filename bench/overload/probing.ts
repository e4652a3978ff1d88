import { setPriority } from 'node:os'
import { percentile } from '../../lab/statistics.ts'
import type { Answers } from './offer.ts'

/** A prober is ahead of the load for a processor, where it may: its own waiting is no latency of what it asks. */
export const AHEAD = -10

/** Sets the priority of this process, as `nice` does. */
export function takePriority(priority: number): void {
  try {
    setPriority(priority)
  } catch {
    // Only root may raise it. The figures then include that the prober waited for a processor.
  }
}

/** Latencies in ms, as they are told. */
export function summed(latencies: number[]): Answers {
  const sorted = Float64Array.from(latencies).sort()
  return {
    requests: sorted.length,
    p50_ms: percentile(sorted, 0.5),
    p99_ms: percentile(sorted, 0.99),
    max_ms: percentile(sorted, 1),
  }
}
