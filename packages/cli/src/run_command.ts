import { AnnalsError as Refusal } from '@annals/client'
import { AnnalsError, DatabaseNotReady, StartError, statusOf } from '@annals/kits/errors.js'
import { operatorsSentence } from '@annals/kits/postgres/database_errors.js'
import { CommanderError } from 'commander'
import { EXIT_CODES, exitCodeOfStatus } from './exit_codes.js'
import { visible } from './terminal/visible.js'

/** A command got invalid input. It exits with the code for that, and a sentence. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Runs a command. An error ends the process with a sentence on stderr, with a stack only for a bug. */
export async function runCommand(work: () => Promise<unknown>): Promise<void> {
  // Failing to show progress is no reason to stop the work.
  process.stderr.on('error', () => {})
  process.stdout.on('error', endWithoutOutput)
  try {
    await work()
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** For a command that continues without its output: lines that cannot be written are lost. */
export function goOnWithoutOutput(): void {
  process.stdout.off('error', endWithoutOutput).on('error', () => {})
}

function endWithoutOutput(error: NodeJS.ErrnoException): never {
  // A reader that closes the pipe, such as `head`, is not a failure to report.
  if (error.code === 'EPIPE') process.exit(EXIT_CODES.pipe_closed)
  process.stderr.write(`annals: the output could not be written: ${error.message}\n`)
  process.exit(EXIT_CODES.failed)
}

/** Reports what went wrong and returns its exit code. */
function report(error: unknown): number {
  // The command line's library has reported it, or printed the requested help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage
  const sentence = operatorsSentence(error)
  if (sentence !== undefined) {
    process.stderr.write(`annals: ${visible(sentence)}\n`)
    return EXIT_CODES.failed
  }
  const code = expectedCode(error)
  if (code !== undefined) {
    process.stderr.write(`annals: ${visible((error as Error).message)}\n`)
    return code
  }
  const shown = visible(String((error as Error)?.stack ?? error))
  process.stderr.write(`annals: unexpected error, please report it:\n${shown}\n`)
  return EXIT_CODES.fault
}

/** The exit code of an expected failure; undefined for a bug. */
function expectedCode(error: unknown): number | undefined {
  if (error instanceof UsageError) return EXIT_CODES.usage
  if (error instanceof DatabaseNotReady) return EXIT_CODES.unavailable
  if (error instanceof StartError) return EXIT_CODES.failed
  if (error instanceof AnnalsError) return exitCodeOfStatus(statusOf(error.error))
  if (!(error instanceof Refusal)) return undefined
  return error.error === 'invalid_request' ? EXIT_CODES.usage : exitCodeOfStatus(error.status)
}
