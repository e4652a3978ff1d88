import { EXIT_CODES } from '../exit_codes.js'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Calls `stop` at the first SIGINT or SIGTERM; a second one ends the process at once. Returns a function that restores
 * what signals did before.
 */
export function onInterrupt(stop: (signal: string) => void): () => void {
  let is_asked = false
  const hear = (signal: string) => {
    if (is_asked) process.exit(EXIT_CODES.interrupted)
    is_asked = true
    stop(signal)
  }
  for (const signal of SIGNALS) process.on(signal, hear)
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, hear)
  }
}
