import type { Config } from '../configuration/config.js'
import { exposureWarnings, signsInByCode } from '../configuration/exposure.js'
import { createSignInCode } from '../console_api/sign_in.js'
import { checkEmbeddedConnections, locateDatabase } from '../postgres/connection_target.js'
import type { Database } from '../postgres/database.js'
import { ensureDefaultProject } from '../projects/projects.js'
import { workOnDatabase } from './work_on_database.js'

/** A database ready for services: migrated, with a default project. */
export interface PreparedDatabase {
  /** Where its data is, in words. */
  database: string
  /** The default project's first API key, if this start created it. */
  api_key: string | undefined
  /** The code that opens the console once, if that is allowed. */
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

/** Creates what the first start creates, and a code for the console. */
export async function createFirst(database: Database, config: Config) {
  return {
    api_key: await ensureDefaultProject(database, config.api_key),
    sign_in_code: signsInByCode(config) ? await createSignInCode(database, 'default') : undefined,
  }
}
