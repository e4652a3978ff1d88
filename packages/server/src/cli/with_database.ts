import { readConfig } from '../config.js'
import type { Database } from '../database/database.js'
import type { Appender } from '../log/appender.js'

/** For work whose statements and waits may take as long as they do. */
const LONG_WORK = { wait_ms_max: 60_000, statement_ms_max: 0 }

/** Tells a person what goes on, on stderr, where it does not mix with a command's output. */
export function tellProgress(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

/** Runs a command's work on the database that the environment names. */
export async function withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const main = await import('../main.js')
  return main.withDatabase(readConfig(process.env), tellProgress, work)
}

/** The same for long work, which may also append to logs. */
export async function withDatabaseForLong<T>(
  work: (database: Database, appender: Appender) => Promise<T>,
): Promise<T> {
  const main = await import('../main.js')
  return main.withDatabase(readConfig(process.env), tellProgress, work, LONG_WORK)
}

/** The same for long work that only reads: the schema stays as it is, and PostgreSQL refuses to write. */
export async function withDatabaseToRead<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const main = await import('../main.js')
  return main.withDatabase(readConfig(process.env), tellProgress, work, { ...LONG_WORK, read_only: true })
}
