import { performance } from 'node:perf_hooks'
import { Changes } from '@annals/kits/changes/changes.js'
import type { Config } from '@annals/kits/configuration/config.js'
import { exposureWarnings } from '@annals/kits/configuration/exposure.js'
import { closeWithin, listen, turnAway } from '@annals/kits/http/app_server.js'
import { Loop } from '@annals/kits/lifecycle/background.js'
import { mendAfterClock } from '@annals/kits/lifecycle/stepped_clock.js'
import { Metrics, watchChanges } from '@annals/kits/metrics/metrics.js'
import type { Siblings } from '@annals/kits/metrics/metrics_routes.js'
import type { Kits, Module, ModuleRoutes, OpenModule } from '@annals/kits/module.js'
import { LogOutput } from '@annals/kits/outgoing/log_output.js'
import { locateDatabase } from '@annals/kits/postgres/connection_target.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import { type Logger, pino } from 'pino'
import { ACCESS_MODULE } from '../access/module.js'
import { AUDIT_MODULE } from '../audit/module.js'
import { LOG_MODULE } from '../log/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { UNMARKED_MS } from '../projects/tokens/key_look_ups.js'
import { buildApp } from './app.js'
import { type Opening, openKits, openPools, type Pools, type Undo } from './kits.js'
import { migrateDatabase } from './migrate_database.js'
import { functionsOf, MODULES, openModules } from './modules.js'
import { createFirst, type PreparedDatabase } from './prepare_database.js'

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

/** Extra time for a message that is still on its way to the database. */
const SETTLE_MARGIN_S = 15
/** A look for waits that a clock made too long reads all rows that wait: five seconds of a processor with a million timers. */
const CLOCK = { poll_ms: 10_000, rest: 20 }

/**
 * Constructs the service: configuration → database → modules → HTTP → listen, and stops in reverse order. Modules open
 * themselves with the kits of service/kits.ts. With `worker`, it is one of several processes, for which the database has
 * already been prepared.
 * @throws StartError with a sentence for the operator
 */
export async function startService(
  config: Config,
  onProgress: (sentence: string) => void,
  worker?: Siblings,
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
    const opening = { config, modules, target: location, logger, metrics, undo }
    const pools = openPools(opening)
    const created = worker ? undefined : await createFirst(pools.requests.of('start'), config)
    let state: 'ready' | 'turning away' | 'stopping' = 'ready'
    const isReady = () => state === 'ready'
    const isServing = () => state !== 'stopping'
    const { app, changes } = await openApp(opening, pools, { worker, isReady, isServing }, true)
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
      void changes?.stop() // Beside the requests that are still answered.
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

/** Opens the modules and what answers their requests; with `works`, also what they do in the background. */
export async function openApp(
  opening: Opening,
  pools: Pools,
  state: Pick<Kits, 'worker' | 'isReady' | 'isServing'>,
  works: boolean,
  note?: Parameters<typeof buildApp>[3],
) {
  const { config, modules, undo } = opening
  let changes: Changes | undefined
  const kits: Kits = {
    ...(await openKits(opening, pools)),
    ...state,
    changes: {
      prepare: (tenant, name) => changes!.prepare(tenant, name),
      touched: (project_id) => changes!.touched(project_id),
      hurry: (project_id, name) => changes!.hurry(project_id, name),
    },
  }
  const { all, opened } = openModules(modules, kits)
  for (const { close } of all) undo.push(() => close?.())
  if (works) changes = startBackgroundWork(opening, pools, kits, all)
  const routes = await loadRoutes(all)
  const app = await buildApp(
    kits,
    routes,
    {
      ...opened(PROJECTS_MODULE),
      ...opened(ACCESS_MODULE),
      ...opened(AUDIT_MODULE),
      ...opened(LOG_MODULE),
    },
    note,
  )
  undo.push(() => closeWithin(config.drain_ms_max, app))
  return { app, routes, changes }
}

/** Starts what modules do in the background, and what looks at changed sessions for them. */
function startBackgroundWork(
  { config, logger, metrics, undo }: Opening,
  { changes }: Pools,
  { registry, background }: Kits,
  modules: readonly OpenModule[],
): Changes {
  const { database, abort } = changes
  const mended = new Loop({
    ...background,
    failure: 'waits were not looked at; will try again',
    poll: () => mendAfterClock(database, registry.all_tables),
    ...CLOCK,
  })
  undo.push(() => mended.ended())
  for (const { background } of modules) {
    const work = background?.()
    undo.push(() => work?.ended())
  }
  const consumers = modules.flatMap((module) => module.consumers ?? [])
  const settle_s = (UNMARKED_MS + config.statement_ms_max) / 1_000 + SETTLE_MARGIN_S
  const running = new Changes({ database, abort, consumers, logger, settle_s })
  undo.push(() => running.stop())
  watchChanges(metrics.registry, running)
  return running
}

export async function undoAll(undo: Undo, logger: Logger): Promise<void> {
  for (const step of undo.splice(0).reverse()) {
    // A part that fails to stop must not keep the others running.
    await Promise.resolve()
      .then(step)
      .catch((error) => logger.error({ err: describeError(error) }, 'stopping failed'))
  }
}

/** The modules' routes; those opened last come first, in the order of the API's description. */
export function loadRoutes(modules: readonly OpenModule[]): Promise<ModuleRoutes[]> {
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
