import { setMaxListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { AnnalsError as Refusal } from '@annals/client'
import { readConfig } from '@annals/kits/configuration/config.js'
import { AnnalsError, AppendInDoubt } from '@annals/kits/errors.js'
import { ObjectStoreAway } from '@annals/kits/outgoing/object_store.js'
import type { ConnectionTarget, DatabasePool } from '@annals/kits/postgres/database.js'
import { LONG_READ_SETTINGS } from '@annals/kits/postgres/pool_settings.js'
import type { UsageDays } from 'annals/dist/projects/usage.js'
import { EXIT_CODES, exitCodeOfStatus } from '../exit_codes.js'
import { onInterrupt } from '../terminal/interrupt.js'
import { visible, visibleJson } from '../terminal/visible.js'
import type { WorkOptions } from './work_on_database.js'

/** For work without time limits on statements and waits. */
const LONG_WORK = { wait_ms_max: 60_000, statement_ms_max: 0 }

/** Reports progress on stderr, apart from a command's output. */
export function tellProgress(sentence: string): void {
  process.stderr.write(`${visible(sentence)}\n`)
}

/** Prints resources that are JSON texts: as a JSON array, or as a table of some fields. */
export async function printResources(resources: string[], fields: string[], json?: boolean): Promise<void> {
  if (json) process.stdout.write(`${visibleJson(`[${resources.join(',')}]`)}\n`)
  else (await import('../terminal/table.js')).printTable(fields, resources)
}

/** There is no embedded database here yet. */
class NoDatabase extends AnnalsError {}

/** @throws AnnalsError if there is no database to work on: a typing error in a path should not create one */
export function expectDatabase(): void {
  const { database_url, data_dir } = readConfig(process.env)
  if (database_url !== undefined || existsSync(join(data_dir, 'postgres'))) return
  throw new NoDatabase(
    'unavailable',
    `There is no embedded database in ${data_dir} yet, and this command works on the database. Run it where the service runs, set ANNALS_DATA_DIR or DATABASE_URL, or start the service first (\`annals serve\`, or \`npm start\` in a clone).`,
  )
}

/** Whom the audit names for what a command does. */
export function operatorName(): string {
  return `command line of ${userInfo().username}@${hostname()}`
}

/** `may_create`: without it, a command fails where there is no embedded database yet, which others than the service do not start one for. */
type CommandOptions = WorkOptions & { may_create?: boolean }

/** Runs a command's work on the database that the environment names. */
export async function withDatabase<T>(
  work: (database: DatabasePool, usage: UsageDays) => Promise<T>,
  { may_create = false, ...options }: CommandOptions = {},
): Promise<T> {
  if (!may_create) expectDatabase()
  const { workOnDatabase } = await import('./work_on_database.js')
  return workOnDatabase(readConfig(process.env), tellProgress, work, options)
}

/** The same for long work, which may also count usage; `signal` ends it. */
export function withDatabaseForLong<T>(
  work: Parameters<typeof withDatabase<T>>[0],
  signal: AbortSignal,
  may_create = false,
): Promise<T> {
  return withDatabase(work, { ...LONG_WORK, signal, may_create })
}

/** The same for long work that only reads; the schema is not migrated, and must already have this version. */
export function withDatabaseToRead<T>(
  work: (database: DatabasePool) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return withDatabase(work, { ...LONG_WORK, settings: LONG_READ_SETTINGS, schema: 'check', signal })
}

const CLOCK_EVERY_MS = 5_000

/** For work of unknown duration: reports every few seconds that it is still running. */
async function tellTime<T>(task: string, work: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const tell = () => process.stderr.write(`${task}: ${Math.round((performance.now() - begun) / 1000)} s\n`)
  const clock = setInterval(tell, CLOCK_EVERY_MS)
  try {
    return await work()
  } finally {
    clearInterval(clock)
  }
}

/** Runs long work on the schema of the database that the environment names, and tells how long it takes. */
export async function runSchemaWork(
  task: string,
  work: (target: ConnectionTarget, signal: AbortSignal) => Promise<string>,
  words: string,
): Promise<void> {
  const { locateDatabase } = await import('@annals/kits/postgres/connection_target.js')
  const { migrateDatabase } = await import('annals/dist/service/migrate_database.js')
  const location = await locateDatabase(readConfig(process.env), tellProgress)
  const migrated = async (signal: AbortSignal) => {
    const outcome = await tellTime(task, async () => {
      await migrateDatabase(location.target, tellProgress, signal)
      return work(location.target, signal)
    })
    process.stdout.write(`${outcome}\n`)
  }
  try {
    await runLongWork(migrated, words)
  } finally {
    await location.release()
  }
}

/** Runs long work on the database that the environment names. */
export function runLongDatabaseWork(
  work: (database: DatabasePool, signal: AbortSignal, usage: UsageDays) => Promise<void>,
  words: Parameters<typeof runLongWork>[1],
  may_create = false,
): Promise<void> {
  const run = (signal: AbortSignal) =>
    withDatabaseForLong((database, usage) => work(database, signal, usage), signal, may_create)
  return runLongWork(run, words)
}

/** The same for work that only reads, on a standby as well; the schema must have this version. */
export function runLongReading(
  work: (database: DatabasePool, signal: AbortSignal) => Promise<void>,
  words: Parameters<typeof runLongWork>[1],
): Promise<void> {
  return runLongWork((signal) => withDatabaseToRead((database) => work(database, signal), signal), words)
}

/**
 * Runs long work. SIGINT or SIGTERM asks it, through its signal, to stop and clean up; a second one ends the process
 * at once. `words` describe the state after that, and what to do if the database or the service becomes unavailable.
 */
export async function runLongWork(
  work: (signal: AbortSignal) => Promise<unknown>,
  words: string | { interrupted: string; unfinished: string },
): Promise<void> {
  const { interrupted, unfinished } =
    typeof words === 'string' ? { interrupted: words, unfinished: words } : words
  const abort = new AbortController()
  // Each statement in flight listens, and there may be one for each table: more than the ten at which Node warns.
  setMaxListeners(0, abort.signal)
  const end = onInterrupt(() => abort.abort())
  try {
    await work(abort.signal)
  } catch (error) {
    if (error === abort.signal.reason) {
      process.stderr.write(`annals: interrupted. ${interrupted}\n`)
      process.exitCode = EXIT_CODES.interrupted
      return
    }
    const isAway =
      error instanceof AppendInDoubt ||
      (error instanceof AnnalsError && error.error === 'unavailable' && !(error instanceof NoDatabase))
    if (error instanceof Refusal && exitCodeOfStatus(error.status) === EXIT_CODES.unavailable)
      throw new AnnalsError('unavailable', `${error.message} ${unfinished}`, { cause: error })
    if (!isAway) throw error
    const away = error instanceof ObjectStoreAway ? error.message : 'The database became unavailable.'
    throw new AnnalsError('unavailable', `${away} ${unfinished}`, { cause: error })
  } finally {
    end()
  }
}
