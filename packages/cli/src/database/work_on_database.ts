import type { Config } from '@annals/kits/configuration/config.js'
import { objectStoreOf } from '@annals/kits/outgoing/s3_store.js'
import { locateDatabase } from '@annals/kits/postgres/connection_target.js'
import { type DatabasePool, openDatabase } from '@annals/kits/postgres/database.js'
import { checkSchema } from '@annals/kits/postgres/migrator.js'
import { UsageDays } from 'annals/dist/projects/usage.js'
import { migrateDatabase } from 'annals/dist/service/migrate_database.js'

export interface WorkOptions {
  wait_ms_max?: number
  statement_ms_max?: number
  settings?: Record<string, string>
  /** Ends the command: its statement in the database is cancelled, and it fails with the signal's reason. */
  signal?: AbortSignal
  /** `check`: the schema must already have this version; `any`: any schema. By default it is migrated. */
  schema?: 'check' | 'any'
}

/**
 * Runs a command on the configured database, migrated. Starts and stops an embedded server if none was running. What
 * it adds to `usage` counts as stored today.
 */
export async function workOnDatabase<T>(
  config: Config,
  onProgress: (sentence: string) => void,
  work: (database: DatabasePool, usage: UsageDays) => Promise<T>,
  { schema, ...options }: WorkOptions = {},
): Promise<T> {
  const location = await locateDatabase(config, onProgress)
  try {
    options.signal?.throwIfAborted()
    if (schema === undefined) await migrateDatabase(location.target, onProgress, options.signal)
    else if (schema === 'check') await checkSchema(location.target)
    const { database_wait_ms_max, statement_ms_max } = config
    const database = openDatabase({
      target: location.target,
      objects: objectStoreOf(config),
      connections_max: 2,
      wait_ms_max: database_wait_ms_max,
      statement_ms_max,
      ...options,
    })
    const usage = new UsageDays({ of: () => database })
    try {
      return await work(database, usage)
    } finally {
      await usage.write().catch(() => {})
      await database.close()
    }
  } finally {
    await location.release()
  }
}
