import { AnnalsError as Refusal } from '@annals/client'
import { CommanderError } from 'commander'
import { AnnalsError, StartError, statusOf } from '../errors.js'
import { EXIT_CODES, exitCodeOfStatus } from './exit_codes.js'
import { visible } from './terminal/visible.js'

/** A command that was given what it cannot work with. Ends with the code for that, and a sentence. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Runs a command. What it throws ends the process with a sentence on stderr, with a stack only for a fault. */
export async function runCommand(work: () => Promise<unknown>): Promise<void> {
  // Progress that cannot be shown is no reason to give up the work.
  process.stderr.on('error', () => {})
  process.stdout.on('error', endWithoutOutput)
  try {
    await work()
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** For a command whose work does not end with its output: what it prints is lost where it cannot be written. */
export function goOnWithoutOutput(): void {
  process.stdout.off('error', endWithoutOutput).on('error', () => {})
}

function endWithoutOutput(error: NodeJS.ErrnoException): never {
  // A reader that has seen enough, such as `head`, is no failure to report.
  if (error.code === 'EPIPE') process.exit(EXIT_CODES.pipe_closed)
  process.stderr.write(`annals: the output could not be written: ${error.message}\n`)
  process.exit(EXIT_CODES.failed)
}

/** Says what went wrong and gives the exit code that goes with it. */
function report(error: unknown): number {
  // The command line's library has said it, or has printed the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage
  const code = expectedCode(error)
  if (code !== undefined) {
    process.stderr.write(`annals: ${visible((error as Error).message)}\n`)
    return code
  }
  process.stderr.write(`annals: unexpected error, please report it:\n${(error as Error)?.stack ?? error}\n`)
  return EXIT_CODES.fault
}

/** The code of a failure that a person is told about; undefined for a fault of this program. */
function expectedCode(error: unknown): number | undefined {
  if (error instanceof UsageError) return EXIT_CODES.usage
  if (error instanceof StartError) return EXIT_CODES.failed
  if (error instanceof AnnalsError) return exitCodeOfStatus(statusOf(error.error))
  if (!(error instanceof Refusal)) return undefined
  return error.error === 'invalid_request' ? EXIT_CODES.usage : exitCodeOfStatus(error.status)
}
