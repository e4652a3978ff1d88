import { AnnalsError, StartError } from '../errors.js'

/** Exit codes: 0 done, 1 refused or failed with a sentence that says why, 70 a fault of the program. */
const EXIT_FAILED = 1
const EXIT_FAULT = 70

/** Runs a command. What it throws ends the process with a sentence on stderr, with a stack only for a fault. */
export async function runCommand(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (error instanceof StartError || error instanceof AnnalsError) {
      process.stderr.write(`annals: ${error.message}\n`)
      process.exitCode = EXIT_FAILED
    } else {
      process.stderr.write(
        `annals: unexpected fault, please report it:\n${(error as Error)?.stack ?? error}\n`,
      )
      process.exitCode = EXIT_FAULT
    }
  }
}
