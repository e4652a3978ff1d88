import { performance } from 'node:perf_hooks'
import { type Logger, pino } from 'pino'
import type { Config } from '../configuration/config.js'
import { exposureWarnings } from '../configuration/exposure.js'
import { closeWithin, listen, turnAway } from '../http/listen.js'
import { Metrics } from '../metrics/metrics.js'
import type { Module, ModuleRoutes } from '../module.js'
import { locateDatabase } from '../postgres/connection_target.js'
import { describeError } from '../postgres/database_errors.js'
import { WorkThread } from '../threads/work_thread.js'
import { buildApp } from './app.js'
import { LogOutput } from './log_output.js'
import { migrateDatabase } from './migrate_database.js'
import { functionsOf, MODULES } from './modules.js'
import { createFirst, type PreparedDatabase } from './prepare_database.js'
import type { AppParts, WorkerParts } from './service_context.js'
import {
  openAccess,
  openLifecycle,
  openLog,
  openPools,
  openUsage,
  startBackgroundWork,
  type Undo,
} from './service_parts.js'

export interface Service extends Omit<PreparedDatabase, 'release'> {
  url: string
  /** ms from the process's start until it could serve. */
  ready_after_ms: number
  /**
   * Is no longer ready, serves on for `delay_ms` (0), stops accepting requests, answers those in flight, and disconnects
   * from the database. Idempotent.
   */
  stop(delay_ms?: number): Promise<void>
}

/**
 * Constructs the service: configuration → database → log → HTTP → listen, and stops in reverse order. Only this file
 * and service/service_parts.ts construct a service. With `worker`, it is one of several processes, for which the
 * database has already been prepared.
 * @throws StartError with a sentence for the operator
 */
export async function startService(
  config: Config,
  onProgress: (sentence: string) => void,
  worker?: WorkerParts,
  modules: readonly Module[] = MODULES,
): Promise<Service> {
  const metrics = new Metrics()
  const undo: Undo = []
  const logger = openLogger(config, metrics, undo)
  const unwind = () => undoAll(undo, logger)
  try {
    const location = await locateDatabase(config, onProgress)
    undo.push(() => location.release())
    if (!worker) await migrateDatabase(location.target, onProgress, undefined, functionsOf(modules))
    const pools = openPools(config, location.target, logger, metrics, undo)
    const created = worker ? undefined : await createFirst(pools.requests.of('start'), config)
    const usage = openUsage(pools, logger, undo)
    const log = await openLog(config, pools, location.listening, usage, metrics, undo)
    const thread = new WorkThread(config.body_bytes_max)
    undo.push(() => thread.close())
    const lifecycle = openLifecycle(config, modules)
    const background = { config, pools, ...lifecycle, thread, logger, metrics, undo, modules }
    const changes = startBackgroundWork(background)

    let state: 'ready' | 'turning away' | 'stopping' = 'ready'
    const parts: AppParts = {
      config,
      logger,
      metrics,
      database: pools.requests,
      reserved: pools.reserved,
      ...lifecycle,
      thread,
      ...openAccess(config, pools),
      usage,
      changes,
      ...log,
      worker,
      isReady: () => state === 'ready',
      isServing: () => state !== 'stopping',
    }
    const app = await buildApp(parts, await loadRoutes(modules))
    undo.push(() => closeWithin(config.drain_ms_max, app))
    for (const warning of worker ? [] : [...exposureWarnings(config), ...location.warnings]) {
      logger.warn(warning)
      onProgress(`Warning: ${warning}`)
    }
    await pools.reserved.objects?.load()
    const url = await listen(app, config)
    const stop = async (delay_ms = 0) => {
      state = 'turning away'
      if (delay_ms > 0) await turnAway(delay_ms, app)
      state = 'stopping'
      void changes.stop() // Beside the requests that are still answered.
      return unwind()
    }
    return {
      url,
      database: location.description,
      api_key: created?.api_key,
      sign_in_code: created?.sign_in_code,
      ready_after_ms: Math.round(performance.now()),
      stop,
    }
  } catch (error) {
    await unwind()
    throw error
  }
}

async function undoAll(undo: Undo, logger: Logger): Promise<void> {
  for (const step of undo.splice(0).reverse()) {
    // A part that fails to stop must not keep the others running.
    await Promise.resolve()
      .then(step)
      .catch((error) => logger.error({ err: describeError(error) }, 'stopping failed'))
  }
}

/** What answers the modules' requests; those of what refers to others first, as a reader of the API meets them. */
export function loadRoutes(modules: readonly Module[]): Promise<ModuleRoutes[]> {
  return Promise.all(modules.toReversed().map(async ({ routes }) => (await routes?.()) ?? {}))
}

/** The log. Its last lines are written however the process ends, as far as it can still do anything. */
function openLogger(config: Config, metrics: Metrics, undo: Undo): Logger {
  const output = new LogOutput({
    onLost: (lines) => metrics.logLinesLost(lines),
    onResumed: (lines) => logger.warn({ lines }, 'log lines were lost: they could not be written'),
  })
  const logger = pino({ level: config.log_level, base: { pid: process.pid } }, output)
  const end = () => output.end()
  process.once('exit', end)
  undo.push(() => {
    process.off('exit', end)
    end()
  })
  return logger
}
