import { type Config, readConfig } from '../configuration/config.js'
import { StartError } from '../errors.js'
import type { Database } from '../postgres/database.js'
import { checkDataDirectory } from './data_directory.js'
import { checkDatabase } from './database.js'
import { attempt, type Diagnosis, well, wrong } from './diagnosis.js'
import { checkExposure, checkNode, checkVariables } from './machine.js'

/** Opens the configured database for `work`, without migrating it. */
export type OpenDatabase = (
  config: Config,
  work: (database: Database) => Promise<Diagnosis[]>,
) => Promise<Diagnosis[]>

/**
 * Checks everything that Annals depends on, and changes nothing: machine, settings, data directory, database.
 * `workers`: the number of processes of a node.
 */
export async function diagnose(
  environment: Record<string, string | undefined>,
  open: OpenDatabase,
  workers = 1,
): Promise<Diagnosis[]> {
  const checks = [checkNode(process.versions.node), checkVariables(environment)]
  let config: Config
  try {
    config = readConfig(environment)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return [...checks, wrong('settings', 'failure', 'a setting is invalid', error.message)]
  }
  checks.push(well('settings', 'all values are valid'), ...checkExposure(config))
  if (config.database_url === undefined) {
    const directory = await attempt('data directory', () => checkDataDirectory(config.data_dir))
    checks.push(...directory)
    // There is nothing to check yet, and starting the server would create it.
    if (directory.some(({ check }) => check === 'data directory')) return checks
  }
  return [...checks, ...(await checkConnection(config, open, workers))]
}

async function checkConnection(config: Config, open: OpenDatabase, workers: number): Promise<Diagnosis[]> {
  try {
    return await open(config, (database) => checkDatabase(database, config, workers))
  } catch (error) {
    const reason = error instanceof Error ? error : new Error(String(error))
    const todo =
      reason instanceof StartError
        ? reason.message
        : 'Check DATABASE_URL, that the server runs, and that it accepts this user.'
    const cause = (reason.cause as Error | undefined)?.message
    return [wrong('connection', 'failure', `no connection${cause ? ` (${cause.trim()})` : ''}`, todo)]
  }
}
