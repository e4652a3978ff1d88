import type { DataDirectory } from './data_directory.js'
import type { Account } from './run_program.js'

/** A server's data directory, and what is needed to start and stop it. */
export interface Place {
  readonly directory: DataDirectory
  /** A path to the data directory that is short enough for sockets. */
  readonly reach: string
  readonly account: Account | undefined
  readonly say: (sentence: string) => void
}
