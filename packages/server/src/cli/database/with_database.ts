import { hostname, userInfo } from 'node:os'
import { readConfig } from '../../configuration/config.js'
import type { Appender } from '../../log/append/appender.js'
import type { Database } from '../../postgres/database.js'
import { LONG_READ_SETTINGS } from '../../postgres/pool_settings.js'

/** For work without time limits on statements and waits. */
const LONG_WORK = { wait_ms_max: 60_000, statement_ms_max: 0 }

/** Reports progress on stderr, apart from a command's output. */
export function tellProgress(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

/** Prints resources that are JSON texts: as a JSON array, or as a table of some fields. */
export async function printResources(resources: string[], fields: string[], json?: boolean): Promise<void> {
  if (json) process.stdout.write(`[${resources.join(',')}]\n`)
  else (await import('../terminal/table.js')).printTable(fields, resources)
}

/** Whom the audit names for what a command does. */
export function operatorName(): string {
  return `command line of ${userInfo().username}@${hostname()}`
}

/** Runs a command's work on the database that the environment names. */
export async function withDatabase<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const { workOnDatabase } = await import('../../service/work_on_database.js')
  return workOnDatabase(readConfig(process.env), tellProgress, work)
}

/** The same for long work, which may also append to logs; `signal` ends it. */
export async function withDatabaseForLong<T>(
  work: (database: Database, appender: Appender) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { workOnDatabase } = await import('../../service/work_on_database.js')
  return workOnDatabase(readConfig(process.env), tellProgress, work, { ...LONG_WORK, signal })
}

/** The same for long work that only reads; the schema is not migrated, and must already have this version. */
export async function withDatabaseToRead<T>(
  work: (database: Database) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { workOnDatabase } = await import('../../service/work_on_database.js')
  const options = { ...LONG_WORK, settings: LONG_READ_SETTINGS, schema: 'check', signal } as const
  return workOnDatabase(readConfig(process.env), tellProgress, work, options)
}
