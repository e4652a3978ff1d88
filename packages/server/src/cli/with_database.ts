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
  const { workOnDatabase } = await import('../work_on_database.js')
  return workOnDatabase(readConfig(process.env), tellProgress, work)
}

/** The same for long work, which may also append to logs. */
export async function withDatabaseForLong<T>(
  work: (database: Database, appender: Appender) => Promise<T>,
): Promise<T> {
  const { workOnDatabase } = await import('../work_on_database.js')
  return workOnDatabase(readConfig(process.env), tellProgress, work, LONG_WORK)
}

/**
 * For work that reads much: PostgreSQL refuses to write, and takes one process of the server's. The tables may never
 * have been analyzed, as after a restore: a piece must not become a scan of the whole table, nor compare each of its
 * rows with each.
 */
const READ_SETTINGS = {
  default_transaction_read_only: 'on',
  max_parallel_workers_per_gather: '0',
  enable_seqscan: 'off',
  enable_nestloop: 'off',
  jit: 'off',
  work_mem: '64MB',
}

/** The same for long work that only reads; the schema stays as it is, and must be this version's. */
export async function withDatabaseToRead<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const { workOnDatabase } = await import('../work_on_database.js')
  const options = { ...LONG_WORK, settings: READ_SETTINGS, schema: 'check' } as const
  return workOnDatabase(readConfig(process.env), tellProgress, work, options)
}
