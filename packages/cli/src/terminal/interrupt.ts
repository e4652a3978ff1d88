import { EXIT_CODES } from '../exit_codes.js'

/** SIGHUP: the terminal was closed. SIGBREAK: Ctrl-Break, on Windows. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK'] as const

/** So long npm takes to pass on a signal that the terminal has sent to the command as well. */
const PASSED_ON_MS = 500

/**
 * Calls `stop` at the first of these signals; a second one ends the process at once. Returns a function that restores
 * what signals did before.
 */
export function onInterrupt(stop: (signal: string) => void): () => void {
  let asked: { signal: string; at: number } | undefined
  const hear = (signal: string) => {
    const now = performance.now()
    if (asked?.signal === signal && now - asked.at < PASSED_ON_MS) return
    if (asked) process.exit(EXIT_CODES.interrupted)
    asked = { signal, at: now }
    stop(signal)
  }
  for (const signal of SIGNALS) process.on(signal, hear)
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, hear)
  }
}
