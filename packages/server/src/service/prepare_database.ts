import type { Config } from '@annals/kits/configuration/config.js'
import { exposureWarnings, signsInByCode } from '@annals/kits/configuration/exposure.js'
import { objectStoreOf } from '@annals/kits/outgoing/s3_store.js'
import { checkEmbeddedConnections, locateDatabase } from '@annals/kits/postgres/connection_target.js'
import { type Database, type DatabasePool, openDatabase } from '@annals/kits/postgres/database.js'
import { checkSchema } from '@annals/kits/postgres/migrator.js'
import { checkVectorType } from '@annals/kits/postgres/vector_type.js'
import { createSignInCode } from '../console_api/sign_in.js'
import { ensureDefaultProject } from '../projects/projects.js'
import { UsageDays } from '../projects/usage.js'
import { migrateDatabase } from './migrate_database.js'

export interface PreparedDatabase {
  database: string
  api_key: string | undefined
  sign_in_code: string | undefined
  release(): Promise<void>
}

/**
 * Does once for several processes what each would do by itself, and keeps the database running for them until it is
 * released. @throws StartError also if the embedded server has too few connections for so many processes
 */
export async function prepareDatabase(
  config: Config,
  onProgress: (sentence: string) => void,
  processes: number,
): Promise<PreparedDatabase> {
  checkEmbeddedConnections(config, processes)
  const location = await locateDatabase(config, onProgress)
  for (const warning of [...exposureWarnings(config), ...location.warnings]) onProgress(`Warning: ${warning}`)
  try {
    const created = await workOnDatabase(config, onProgress, (database) => createFirst(database, config))
    return { database: location.description, ...created, release: () => location.release() }
  } catch (error) {
    await location.release()
    throw error
  }
}

/** Creates what the first start creates, and a code for the console. @throws StartError if the database lacks what is set */
export async function createFirst(database: Database, config: Config) {
  await checkVectorType(database, config)
  return {
    api_key: await ensureDefaultProject(database, config.api_key),
    sign_in_code: signsInByCode(config) ? await createSignInCode(database, 'default') : undefined,
  }
}

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
