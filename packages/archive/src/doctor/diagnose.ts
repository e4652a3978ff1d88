import { type Config, describeSettings, readConfig } from '@annals/kits/configuration/config.js'
import { exposureWarnings } from '@annals/kits/configuration/exposure.js'
import { StartError } from '@annals/kits/errors.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { NODE_MIN } from '@annals/kits/version.js'
import { checkDataDirectory } from './data_directory.js'
import { checkDatabase } from './database.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'

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
    const directory = await checkDataDirectory(config.data_dir)
    checks.push(...directory)
    // Starting the server would create what is not there.
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

/** Variables with our prefix that are read by other parts than the service. */
const OTHER_VARIABLES = ['ANNALS_URL', 'ANNALS_TOKEN', 'ANNALS_PROFILE']

function checkNode(version: string): Diagnosis {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const [majorMin = 0, minorMin = 0] = NODE_MIN.split('.').map(Number)
  const fits = major > majorMin || (major === majorMin && minor >= minorMin)
  return fits
    ? well('node', `Node ${version}`)
    : wrong('node', 'failure', `Node ${version}`, `Install Node ${NODE_MIN} or newer.`)
}

function checkVariables(environment: Record<string, string | undefined>): Diagnosis {
  const known = [...describeSettings().map(({ variable }) => variable), ...OTHER_VARIABLES]
  const unknown = Object.keys(environment).filter((name) => /^ANNALS_/i.test(name) && !known.includes(name))
  if (unknown.length === 0) return well('variables', 'no ANNALS_ variable is misspelt')
  const hints = unknown.map((name) => {
    const nearest = nearestTo(name, known)
    return nearest === undefined
      ? `No part of Annals reads ${name}: remove it.`
      : `${name}: did you mean ${nearest}?`
  })
  const found = `${unknown.join(', ')}: not a setting`
  return wrong('variables', 'warning', found, `${hints.join(' ')} docs/settings.md lists all settings.`)
}

function checkExposure(config: Config): Diagnosis[] {
  const warnings = exposureWarnings(config)
  if (warnings.length === 0) return [well('exposure', `listens on ${config.host}`)]
  return warnings.map((warning) => {
    const [found = warning, ...todo] = warning.split('. ')
    return wrong('exposure', 'warning', found, todo.join('. '))
  })
}

const SIMILAR = 0.6

/** The name that shares most pairs of adjacent letters, if it shares many. */
function nearestTo(name: string, candidates: string[]): string | undefined {
  const pairs = pairsOf(name)
  const rated = candidates.map((candidate) => {
    const others = pairsOf(candidate)
    const shared = [...pairs].filter((pair) => others.has(pair)).length
    return { candidate, similarity: (2 * shared) / (pairs.size + others.size) }
  })
  rated.sort((a, b) => b.similarity - a.similarity)
  return rated[0] && rated[0].similarity >= SIMILAR ? rated[0].candidate : undefined
}

function pairsOf(name: string): Set<string> {
  const letters = name.toUpperCase().replace(/^ANNALS_/, '')
  return new Set(Array.from({ length: letters.length - 1 }, (_, index) => letters.slice(index, index + 2)))
}
