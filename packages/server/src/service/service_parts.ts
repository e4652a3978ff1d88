import type { Logger } from 'pino'
import type { Config } from '../configuration/config.js'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from '../fairness/fair_semaphore.js'
import { defaultMemoryBytes, memoryBudget } from '../fairness/memory_budget.js'
import { Heartbeat } from '../http/answer/heartbeat.js'
import { forgetOldKeys } from '../lifecycle/erase/forget_old_keys.js'
import { applyRetention } from '../lifecycle/erase/retention.js'
import { Appender } from '../log/append/appender.js'
import { Feed } from '../log/follow/feed.js'
import type { Metrics } from '../metrics/metrics.js'
import { AvailabilityProbe } from '../postgres/availability_probe.js'
import { SILENT_BELL } from '../postgres/bell.js'
import {
  type ConnectionTarget,
  type Database,
  DatabaseAway,
  type DatabasePool,
  openDatabase,
} from '../postgres/database.js'
import { describeError } from '../postgres/database_errors.js'
import { RESERVED_CONNECTIONS, requestSettings } from '../postgres/pool_settings.js'
import { PostgresBell } from '../postgres/postgres_bell.js'
import { SharedPool } from '../postgres/shared_pool.js'
import { findTracing } from '../tracing/find_tracing.js'

/** Part of the wait for the database after which one that answers nothing counts as away. */
const PROBE_SHARE = 0.8

const TOO_MUCH_UNDER_WAY =
  'This project has too many requests under way that need the database. Nothing was done; retry shortly.'

/**
 * Requests with long work at once. One project alone has two of these places: while it copies a long session, which
 * may take a minute, it can erase a user.
 */
const LONG_WORK_MAX = 4

/** Part of the memory that appends may wait in: all that is sent in them counts to its project besides. */
const QUEUE_SHARE = 1 / 4

/** What stops the parts that were started, last one first. */
export type Undo = Array<() => unknown>

/** The connections, in pools that take none from each other. */
export interface Pools {
  /** For what requests do beside appends. */
  requests: SharedPool
  /** For appends, so that no number of slow lists keeps them waiting. */
  appends: SharedPool
  /** For what must get through whatever else goes on, and never takes long. */
  reserved: DatabasePool
}

/** Opens the pools. */
export function openPools(
  config: Config,
  target: ConnectionTarget,
  logger: Logger,
  metrics: Metrics,
  undo: Undo,
): Pools {
  const {
    statement_ms_max,
    flushes_max,
    database_connections_max,
    database_wait_ms_max: wait_ms_max,
  } = config
  // Together with the time in which it makes up its mind to ask, no longer than a request waits for a connection.
  const probe = new AvailabilityProbe(target, wait_ms_max * PROBE_SHARE)
  undo.push(() => probe.close())
  const shared = {
    target,
    probe,
    wait_ms_max,
    statement_ms_max,
    settings: requestSettings(target),
    onIdleError: (error: Error) => logger.warn({ err: describeError(error) }, 'lost an idle connection'),
    onFailure: (error: unknown) => metrics.statementFailed(error),
  }
  const open = (connections_max: number) => {
    const pool = openDatabase({ ...shared, connections_max })
    undo.push(() => pool.close())
    return pool
  }
  return {
    requests: new SharedPool(open(database_connections_max), {
      places_max: database_connections_max,
      wait_ms_max,
      refusal: () => new AnnalsError('overloaded', TOO_MUCH_UNDER_WAY),
    }),
    // A project's flushes fit into its share; what reads stored entries back for retries has to.
    appends: new SharedPool(open(flushes_max), {
      places_max: flushes_max,
      wait_ms_max,
      refusal: () => new DatabaseAway(false, new Error('no connection for appends came free')),
    }),
    reserved: open(RESERVED_CONNECTIONS),
  }
}

/** Bounds the requests that work in many statements, so that they leave the database's time to the others. */
export function limitLongWork({ database_wait_ms_max: wait_ms_max }: Config): FairSemaphore {
  return new FairSemaphore({
    places_max: LONG_WORK_MAX,
    wait_ms_max,
    refusal: () =>
      new AnnalsError(
        'overloaded',
        'Too many copies and erasures are under way at this node. Try again when one of them has ended.',
      ),
  })
}

/** The log as it is written, followed and traced. */
export async function openLog(
  config: Config,
  pools: Pools,
  listening: ConnectionTarget | undefined,
  metrics: Metrics,
  undo: Undo,
) {
  const tracing = await findTracing()
  undo.push(() => tracing?.close())
  const bell = listening ? new PostgresBell(listening) : SILENT_BELL
  undo.push(() => bell.close())
  const feed = new Feed(pools.requests.of('feed'), bell, config.feed_poll_ms)
  const heartbeat = new Heartbeat()
  undo.push(() => heartbeat.close())
  const memory = memoryBudget(config.memory_bytes_max || defaultMemoryBytes())
  const appender = new Appender({
    ...config,
    queue_bytes_max: Math.min(config.queue_bytes_max, memory.places_max * QUEUE_SHARE),
    wait_ms_max: config.database_wait_ms_max,
    database: pools.appends,
    onAppended: (project_id, session_ids) => feed.appended(project_id, session_ids),
    onFlush: (report) => metrics.flushed(report),
    onTrouble: (trouble) => {
      metrics.flushTroubled(trouble)
      tracing?.flushTroubled(trouble)
    },
    originOf: tracing && (() => tracing.origin()),
    aroundFlush: tracing && ((taken, run) => tracing.flush(taken, run)),
  })
  undo.push(() => appender.close())
  metrics.watch({ appender, feed, memory, pools })
  return { feed, heartbeat, memory, appender, tracing }
}

/** What is done every now and then, though nobody asks for it. */
export function startHousekeeping(config: Config, database: Database, logger: Logger, undo: Undo): void {
  const oldKeys = forgetOldKeys(database, logger)
  undo.push(() => oldKeys.stop())
  const retention = applyRetention(database, logger, config.retention_ms)
  undo.push(() => retention.stop())
}
