import { setMaxListeners } from 'node:events'
import { AnnalsError } from '../../errors.js'
import { AppendInDoubt } from '../../log/append/append_request.js'
import type { Appender } from '../../log/append/appender.js'
import type { Database } from '../../postgres/database.js'
import { EXIT_CODES } from '../exit_codes.js'
import { onInterrupt } from '../terminal/interrupt.js'
import { withDatabaseForLong } from './with_database.js'

const CLOCK_EVERY_MS = 5_000

/** For work of unknown duration: reports every few seconds that it is still running. */
export async function tellTime<T>(task: string, work: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const tell = () => process.stderr.write(`${task}: ${Math.round((performance.now() - begun) / 1000)} s\n`)
  const clock = setInterval(tell, CLOCK_EVERY_MS)
  try {
    return await work()
  } finally {
    clearInterval(clock)
  }
}

/** Runs long work on the database that the environment names. */
export function runLongDatabaseWork(
  work: (database: Database, signal: AbortSignal, appender: Appender) => Promise<void>,
  words: Parameters<typeof runLongWork>[1],
): Promise<void> {
  const run = (signal: AbortSignal) =>
    withDatabaseForLong((database, appender) => work(database, signal, appender), signal)
  return runLongWork(run, words)
}

/**
 * Runs long work. SIGINT or SIGTERM asks it, through its signal, to stop and clean up; a second one ends the process
 * at once. `words` describe the state after that, and what to do if the database becomes unavailable.
 */
export async function runLongWork(
  work: (signal: AbortSignal) => Promise<unknown>,
  words: string | { interrupted: string; unfinished: string },
): Promise<void> {
  const { interrupted, unfinished } =
    typeof words === 'string' ? { interrupted: words, unfinished: words } : words
  const abort = new AbortController()
  // Each statement in flight listens, and there may be one for each table: more than the ten at which Node warns.
  setMaxListeners(0, abort.signal)
  const end = onInterrupt(() => abort.abort())
  try {
    await work(abort.signal)
  } catch (error) {
    if (error === abort.signal.reason) {
      process.stderr.write(`annals: interrupted. ${interrupted}\n`)
      process.exitCode = EXIT_CODES.interrupted
      return
    }
    const isAway =
      error instanceof AppendInDoubt || (error instanceof AnnalsError && error.error === 'unavailable')
    throw isAway
      ? new AnnalsError('unavailable', `The database became unavailable. ${unfinished}`, {
          cause: error,
        })
      : error
  } finally {
    end()
  }
}
