import { performance } from 'node:perf_hooks'
import { type Logger, pino } from 'pino'
import { type Config, readConfig } from './config.js'
import { checkEmbeddedConnections, locateDatabase } from './database/connection_target.js'
import { type ConnectionTarget, type Database, openDatabase } from './database/database.js'
import { describeError } from './database/database_errors.js'
import { checkSchema, migrate } from './database/migrator.js'
import { REQUEST_SETTINGS } from './database/pool_settings.js'
import { PostgresBell } from './database/postgres_bell.js'
import { Pulse } from './database/pulse.js'
import { exposureWarnings } from './exposure.js'
import { buildApp } from './http/app.js'
import type { WorkerParts } from './http/app_parts.js'
import { Heartbeat } from './http/heartbeat.js'
import { closeWithin, listen } from './http/listen.js'
import { signsInByCode } from './http/routes/console.js'
import { Appender } from './log/appender.js'
import { Feed } from './log/feed.js'
import { forgetOldKeys } from './resources/forget_old_keys.js'
import { ensureDefaultProject } from './resources/projects.js'
import { applyRetention } from './resources/retention.js'
import { createSignInCode } from './resources/sign_in.js'
import { TokenDirectory } from './tokens/token_directory.js'

/** Part of the wait for the database after which one that answers nothing counts as away. */
const PULSE_SHARE = 0.8

/** A service that runs. */
export interface Service {
  /** Where it listens, such as http://127.0.0.1:8029. */
  url: string
  /** Where its data is, for a person. */
  database: string
  /** The default project's first API key, where this start made it. */
  api_key: string | undefined
  /** Opens the console once, where that is allowed. */
  sign_in_code: string | undefined
  /** ms from the process's start until it could serve. */
  ready_after_ms: number
  /** Takes no more requests, answers those that it took, and leaves the database. Idempotent. */
  stop(): Promise<void>
}

/** A database that is ready for services: migrated, with a default project. */
export type PreparedDatabase = Pick<Service, 'database' | 'api_key' | 'sign_in_code'> & {
  release(): Promise<void>
}

/**
 * Does for several processes what each would do by itself, and keeps the database running for them until it is
 * released. @throws StartError also when the embedded server has not enough connections for so many processes
 */
export async function prepareDatabase(
  config: Config,
  onProgress: (sentence: string) => void,
  processes: number,
): Promise<PreparedDatabase> {
  checkEmbeddedConnections(config, processes)
  for (const warning of exposureWarnings(config)) onProgress(`Warning: ${warning}`)
  const location = await locateDatabase(config, onProgress)
  try {
    await migrate(location.target, onProgress)
    const { database_wait_ms_max: wait_ms_max, statement_ms_max } = config
    const database = openDatabase({
      target: location.target,
      connections_max: 1,
      wait_ms_max,
      statement_ms_max,
    })
    try {
      const api_key = await ensureDefaultProject(database, config.api_key)
      const sign_in_code = signsInByCode(config) ? await createSignInCode(database) : undefined
      const release = () => location.release()
      return { database: location.description, api_key, sign_in_code, release }
    } finally {
      await database.close()
    }
  } catch (error) {
    await location.release()
    throw error
  }
}

/**
 * Constructs the service: configuration → database → log → HTTP → listen, and in reverse when it stops. This is
 * the only file that constructs. With `worker`, it is one of several processes, for which the database has been
 * prepared.
 * @throws StartError with a sentence for the operator
 */
export async function startService(
  config: Config,
  onProgress: (sentence: string) => void,
  worker?: WorkerParts,
): Promise<Service> {
  const destination = pino.destination({ dest: 2, sync: false })
  const logger = pino({ level: config.log_level, base: { pid: process.pid } }, destination)
  const undo: Undo = [() => destination.flushSync()]
  const unwind = async () => {
    for (const step of undo.splice(0).reverse()) {
      // One part that fails to stop must not keep the others running.
      await Promise.resolve()
        .then(step)
        .catch((error) => logger.error({ err: describeError(error) }, 'stopping failed'))
    }
  }
  try {
    const location = await locateDatabase(config, onProgress)
    undo.push(() => location.release())
    if (!worker) await migrate(location.target, onProgress)
    const { database, appendDatabase } = openPools(config, location.target, logger, undo)
    const api_key = worker ? undefined : await ensureDefaultProject(database, config.api_key)
    const log = openLog(config, database, appendDatabase, location.target, undo)
    const housekeeping = forgetOldKeys(database, logger)
    undo.push(() => housekeeping.stop())
    const retention = applyRetention(database, logger, config.retention_ms)
    undo.push(() => retention.stop())

    let serving = true
    const tokens = new TokenDirectory(database, config.token_cache_ms)
    const app = await buildApp({ config, logger, database, tokens, ...log, worker, isServing: () => serving })
    undo.push(() =>
      closeWithin(
        config.drain_ms_max,
        () => app.close(),
        () => app.server.closeAllConnections(),
      ),
    )
    for (const warning of worker ? [] : exposureWarnings(config)) {
      logger.warn(warning)
      onProgress(`Warning: ${warning}`)
    }
    const signs_in = !worker && signsInByCode(config)
    const sign_in_code = signs_in ? await createSignInCode(database) : undefined
    const url = await listen(app, config)
    const stop = () => {
      serving = false
      return unwind()
    }
    return {
      url,
      database: location.description,
      api_key,
      sign_in_code,
      ready_after_ms: Math.round(performance.now()),
      stop,
    }
  } catch (error) {
    await unwind()
    throw error
  }
}

/** What stops the parts that were started, last one first. */
type Undo = Array<() => unknown>

function openPools(config: Config, target: ConnectionTarget, logger: Logger, undo: Undo) {
  const {
    statement_ms_max,
    flushes_max,
    database_connections_max,
    database_wait_ms_max: wait_ms_max,
  } = config
  // Together with the time in which it makes up its mind to ask, no longer than a request waits for a connection.
  const pulse = new Pulse(target, wait_ms_max * PULSE_SHARE)
  undo.push(() => pulse.close())
  const shared = {
    target,
    pulse,
    wait_ms_max,
    statement_ms_max,
    settings: REQUEST_SETTINGS,
    onIdleError: (error: Error) => logger.warn({ err: describeError(error) }, 'lost an idle connection'),
  }
  const database = openDatabase({ ...shared, connections_max: database_connections_max })
  undo.push(() => database.close())
  // Appends have connections of their own, so that no number of slow lists keeps them waiting.
  const appendDatabase = openDatabase({ ...shared, connections_max: flushes_max })
  undo.push(() => appendDatabase.close())
  return { database, appendDatabase }
}

function openLog(
  config: Config,
  database: Database,
  appendDatabase: Database,
  target: ConnectionTarget,
  undo: Undo,
) {
  const bell = new PostgresBell(target)
  undo.push(() => bell.close())
  const feed = new Feed(database, bell, config.feed_poll_ms)
  const heartbeat = new Heartbeat()
  undo.push(() => heartbeat.close())
  const appender = new Appender({
    ...config,
    wait_ms_max: config.database_wait_ms_max,
    database: appendDatabase,
    onAppended: (project_id, session_ids) => feed.appended(project_id, session_ids),
  })
  undo.push(() => appender.close())
  return { feed, heartbeat, appender }
}

/** How a command works with the database, where it is not as a request does. */
export interface WorkOptions {
  wait_ms_max?: number
  statement_ms_max?: number
  /** Settings of PostgreSQL for the command's connections. */
  settings?: Record<string, string>
  /** `check`: the schema must be this version's already; `any`: whatever it is. By default it is migrated. */
  schema?: 'check' | 'any'
}

/** Runs a command's work on the configured database, migrated, and leaves it as it was found. */
export async function withDatabase<T>(
  config: Config,
  onProgress: (sentence: string) => void,
  work: (database: Database, appender: Appender) => Promise<T>,
  { schema, ...options }: WorkOptions = {},
): Promise<T> {
  const location = await locateDatabase(config, onProgress)
  try {
    if (schema === undefined) await migrate(location.target, onProgress)
    else if (schema === 'check') await checkSchema(location.target)
    const { database_wait_ms_max, statement_ms_max } = config
    const bounds = { wait_ms_max: database_wait_ms_max, statement_ms_max, ...options }
    const database = openDatabase({ target: location.target, connections_max: 2, ...bounds })
    const appender = new Appender({ ...config, ...bounds, database })
    try {
      return await work(database, appender)
    } finally {
      appender.close()
      await database.close()
    }
  } finally {
    await location.release()
  }
}

/** The API's OpenAPI description, made without a database. */
export async function describeApiAsJson(): Promise<string> {
  const config = readConfig({ ANNALS_ADMIN_TOKEN: 'x'.repeat(32) })
  // No request is ever made to this app, so nothing of its parts is ever used.
  const unused = {} as never
  const logger = pino({ level: 'silent' })
  const parts = { database: unused, appender: unused, tokens: unused, feed: unused, heartbeat: unused }
  const app = await buildApp({ config, logger, ...parts, isServing: () => false })
  await app.ready()
  return `${JSON.stringify(app.swagger(), null, 2)}\n`
}
