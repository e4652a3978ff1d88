import { readConfig } from '../config.js'
import type { Database } from '../database/database.js'
import * as main from '../main.js'

/** Tells a person what goes on, on stderr, where it does not mix with a command's output. */
export function tellProgress(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

/** Runs a command's work on the database that the environment names. */
export function withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T> {
  return main.withDatabase(readConfig(process.env), tellProgress, work)
}
