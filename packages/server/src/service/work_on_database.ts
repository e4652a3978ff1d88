import { objectStoreOf } from '../blobs/s3_store.js'
import type { Config } from '../configuration/config.js'
import { Appender } from '../log/append/appender.js'
import { locateDatabase } from '../postgres/connection_target.js'
import { type DatabasePool, openDatabase } from '../postgres/database.js'
import { checkSchema } from '../postgres/migrator.js'
import { UsageDays } from '../projects/usage.js'
import { migrateDatabase } from './migrate_database.js'

/** How a command's use of the database differs from a request's. */
export interface WorkOptions {
  wait_ms_max?: number
  statement_ms_max?: number
  /** Settings of PostgreSQL for the command's connections. */
  settings?: Record<string, string>
  /** Ends the command: its statement in the database is cancelled, and it fails with the signal's reason. */
  signal?: AbortSignal
  /** `check`: the schema must already have this version; `any`: any schema. By default it is migrated. */
  schema?: 'check' | 'any'
}

/**
 * Runs a command on the configured database, migrated. Starts and stops an embedded server if none was running. What it
 * appends, and what else it adds to `usage`, counts as stored today.
 */
export async function workOnDatabase<T>(
  config: Config,
  onProgress: (sentence: string) => void,
  work: (database: DatabasePool, appender: Appender, usage: UsageDays) => Promise<T>,
  { schema, ...options }: WorkOptions = {},
): Promise<T> {
  const location = await locateDatabase(config, onProgress)
  try {
    options.signal?.throwIfAborted()
    if (schema === undefined) await migrateDatabase(location.target, onProgress, options.signal)
    else if (schema === 'check') await checkSchema(location.target)
    const { database_wait_ms_max, statement_ms_max } = config
    const bounds = { wait_ms_max: database_wait_ms_max, statement_ms_max, ...options }
    const database = openDatabase({
      target: location.target,
      objects: objectStoreOf(config),
      connections_max: 2,
      ...bounds,
    })
    const shared = { of: () => database }
    const usage = new UsageDays(shared)
    const appender = new Appender({
      ...config,
      ...bounds,
      queue_wait_ms_max: undefined,
      database: shared,
      onStored: (project_id, stored) => usage.add(project_id, stored),
    })
    try {
      return await work(database, appender, usage)
    } finally {
      appender.close()
      await usage.write().catch(() => {})
      await database.close()
    }
  } finally {
    await location.release()
  }
}
