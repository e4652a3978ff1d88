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
