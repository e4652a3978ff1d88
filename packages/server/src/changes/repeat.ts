import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Does work again and again until the signal goes off, each time after about `every_ms`: this spreads nodes over time,
 * even those that were started together. What fails is told and done again. `first_ms`: the wait for the first time.
 */
export async function repeat(
  work: () => Promise<void>,
  every_ms: number,
  signal: AbortSignal,
  onError: (error: unknown) => void,
  first_ms?: number,
): Promise<void> {
  const pause_ms = () => every_ms * (0.5 + Math.random())
  for (let wait_ms = first_ms ?? pause_ms(); ; wait_ms = pause_ms()) {
    try {
      await sleep(wait_ms, undefined, { signal, ref: false })
      await work()
    } catch (error) {
      if (signal.aborted) return
      onError(error)
    }
  }
}

/** Works on each: one that fails keeps no other from its turn. @throws the first failure, at the end */
export async function each<T>(
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = []
  for (const item of items) {
    signal.throwIfAborted()
    await work(item).catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

const AGAIN_MS = 500

/**
 * Does work again, a moment after each failure, until it is done, the signal has gone off, or `ms_max` have passed.
 * For what others wait for and a database that is away or busy for a moment must not prevent. @throws the last failure
 */
export async function insist(
  work: () => Promise<unknown>,
  ms_max: number,
  signal: AbortSignal,
): Promise<void> {
  for (const until = performance.now() + ms_max; ; ) {
    try {
      await work()
      return
    } catch (error) {
      if (signal.aborted || performance.now() > until) throw error
      await sleep(AGAIN_MS, undefined, { signal, ref: false })
    }
  }
}

/** Share of its time from which the event loop counts as busy, and how many pieces of work long a pause then is. */
const BUSY = { utilization: 0.85, pieces: 4 }

/**
 * How long to pause behind a piece of work that took so many ms: as long as it took, and four times as long if the
 * event loop has been busy since the pause before. Requests go before work in the background.
 */
export function pausesForRequests(): (worked_ms: number) => number {
  let before = performance.eventLoopUtilization()
  return (worked_ms) => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization < BUSY.utilization ? worked_ms : worked_ms * BUSY.pieces
  }
}
