import { setMaxListeners } from 'node:events'
import { AnnalsError } from '../../errors.js'
import { AppendInDoubt } from '../../log/append/append_request.js'
import { EXIT_CODES } from '../exit_codes.js'

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

/**
 * Runs long work. SIGINT or SIGTERM asks it, through its signal, to stop and clean up; a second one ends the process
 * at once. `interrupted` describes the state after that, `unfinished` what to do if the database becomes unavailable.
 */
export async function runLongWork(
  work: (signal: AbortSignal) => Promise<unknown>,
  words: { interrupted: string; unfinished: string },
): Promise<void> {
  const abort = new AbortController()
  // Each statement in flight listens, and there may be one for each table: more than the ten at which Node warns.
  setMaxListeners(0, abort.signal)
  const stop = () => {
    if (abort.signal.aborted) process.exit(EXIT_CODES.interrupted)
    abort.abort()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  try {
    await work(abort.signal)
  } catch (error) {
    if (error === abort.signal.reason) {
      process.stderr.write(`annals: interrupted. ${words.interrupted}\n`)
      process.exitCode = EXIT_CODES.interrupted
      return
    }
    const isAway =
      error instanceof AppendInDoubt || (error instanceof AnnalsError && error.error === 'unavailable')
    throw isAway
      ? new AnnalsError('unavailable', `The database became unavailable. ${words.unfinished}`, {
          cause: error,
        })
      : error
  } finally {
    process.removeListener('SIGINT', stop)
    process.removeListener('SIGTERM', stop)
  }
}
