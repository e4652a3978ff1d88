/** The longest time that a timer supports; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** Calls `action` after `ms`; returns a function that cancels it. */
export function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, Math.min(ms, TIMER_MS_MAX))
  return () => clearTimeout(timer)
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = after(ms, () => {
      unfollow()
      resolve()
    })
    const unfollow = onAbort(signal, (reason) => {
      cancel()
      reject(reason)
    })
  })
}

/**
 * Calls `action` when the signal aborts, at once if it already has. Returns a function that stops listening: a signal
 * that outlives many calls must not collect their listeners.
 */
export function onAbort(
  signal: AbortSignal | null | undefined,
  action: (reason: unknown) => void,
): () => void {
  if (!signal) return () => {}
  const listener = () => action(signal.reason)
  if (signal.aborted) listener()
  else signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
