import type { Logger } from 'pino'
import { AssetUrls } from '../blobs/asset_urls.js'
import { collectBlobs, discardAllObjects } from '../blobs/discard_blobs.js'
import { objectStoreOf } from '../blobs/s3_store.js'
import { Changes } from '../changes/changes.js'
import { repeat } from '../changes/repeat.js'
import type { Config } from '../configuration/config.js'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from '../fairness/fair_semaphore.js'
import { defaultMemoryBytes, memoryBudget } from '../fairness/memory_budget.js'
import { Heartbeat } from '../http/answer/heartbeat.js'
import { Erasure } from '../lifecycle/erase/erasure.js'
import { registryOf, type TableRegistry } from '../lifecycle/registry.js'
import { mendAfterClock } from '../lifecycle/stepped_clock.js'
import { Appender } from '../log/append/appender.js'
import { Feed } from '../log/follow/feed.js'
import { type Metrics, watchChanges } from '../metrics/metrics.js'
import type { Module } from '../module.js'
import { AvailabilityProbe, DOES_IT_COMMIT } from '../postgres/availability_probe.js'
import { straightToWorkers } from '../postgres/citus/worker_pools.js'
import { type ConnectionTarget, DatabaseAway, type DatabasePool, openDatabase } from '../postgres/database.js'
import { describeError } from '../postgres/database_errors.js'
import { CHANGES_CONNECTIONS, RESERVED_CONNECTIONS, requestSettings } from '../postgres/pool_settings.js'
import { PostgresBell, SILENT_BELL } from '../postgres/postgres_bell.js'
import { SharedPool } from '../postgres/shared_pool.js'
import { AdminSessions } from '../projects/tokens/admin_sessions.js'
import { UNMARKED_MS } from '../projects/tokens/key_look_ups.js'
import { TokenDirectory } from '../projects/tokens/token_directory.js'
import { UsageDirectory } from '../projects/usage.js'
import { applyRetention } from '../sessions/erase/retention.js'
import { findErrorsOnThread, wordsOnThread } from '../threads/work_in_orders.js'
import type { WorkThread } from '../threads/work_thread.js'
import { findTracing } from '../tracing/find_tracing.js'
import { Deliveries } from '../webhooks/deliveries.js'
import { webhookConsumer } from '../webhooks/webhooks.js'

/** Share of the wait for the database after which one that does not answer counts as unavailable. */
const PROBE_SHARE = 0.8

/**
 * Shares of the time that an append may be in flight: after the first, it is found out whether anything is committed, and
 * after the second as well, nothing is.
 */
const COMMIT_SHARES = { patience: 0.2, silence: 0.6 }

/** For a message that is still on its way to the database, beside all else that is waited for. */
const SETTLE_MARGIN_S = 15

/** Between two writes of usage by day, on average. */
const USAGE_MS = 10_000

/** Between two looks whether the database's clock was set back, on average. */
const CLOCK_MS = 10_000

/** So that callers are told what they were always told before the database ends the flush. */
const FLUSH_MARGIN_MS = 1_000

const TOO_MUCH_UNDER_WAY =
  'This project has too many requests in flight that need the database. Nothing was done; retry shortly.'

const TOO_MANY_LONG =
  'Too many copies and erasures are in progress at this node. Retry when one of them has ended.'

const DETOUR = 'a worker cannot be reached directly: its projects are served through the coordinator'

/**
 * Long requests at once. A single project may use two of these slots: while it copies a long session, which may take
 * a minute, it can erase a user.
 */
const LONG_WORK_MAX = 4

/** Share of the memory that waiting appends may use: what they sent counts to their project as well. */
const QUEUE_SHARE = 1 / 4

/** Stops the parts that were started, last one first. */
export type Undo = Array<() => unknown>

export interface Pools {
  /** For everything that requests do except appends. */
  requests: SharedPool
  /** For appends, so that slow lists never delay them. */
  appends: SharedPool
  /** For short queries that must always get through. */
  reserved: DatabasePool
  /** For consumers of changes; cut off when they stop. */
  changes: { database: DatabasePool; abort: AbortController }
}

/** What finds out that the database answers nothing, or commits nothing, and what then happens to connections. */
function openProbes(config: Config, target: ConnectionTarget, undo: Undo) {
  const { database_wait_ms_max, commit_ms_max } = config
  // Including the time before it decides to probe, no longer than a request waits for a connection.
  const renewal = { at: 0 }
  // When it is back, it may be another machine, and old connections lead to the one that hangs.
  const onSilence = () => {
    renewal.at = performance.now()
    if ('hosts' in target) target.hosts?.forget()
  }
  const probe = new AvailabilityProbe(target, database_wait_ms_max * PROBE_SHARE, undefined, onSilence)
  const patience_ms = commit_ms_max * COMMIT_SHARES.patience
  const commits = new AvailabilityProbe(target, commit_ms_max * COMMIT_SHARES.silence, {
    ...DOES_IT_COMMIT,
    patience_ms,
  })
  undo.push(
    () => probe.close(),
    () => commits.close(),
  )
  return { probe, commits, renewal }
}

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
  const flush_ms_max = Math.min(statement_ms_max, config.commit_ms_max + FLUSH_MARGIN_MS)
  const shared = {
    target,
    objects: objectStoreOf(config),
    ...openProbes(config, target, undo),
    lifetime_ms_max: config.database_lifetime_ms_max,
    wait_ms_max,
    statement_ms_max,
    settings: requestSettings(target),
    onIdleError: (error: Error) => logger.warn({ err: describeError(error) }, 'lost an idle connection'),
    onFailure: (error: unknown) => metrics.statementFailed(error),
  }
  const abort = new AbortController()
  // A commit that is lost with the machine takes the clearing of marks with it: what it did is done again.
  const changes = {
    signal: abort.signal,
    settings: { ...shared.settings, synchronous_commit: 'off' },
    // Most of its commits wait for nothing, and nobody waits for the others.
    commits: undefined,
  }
  const closedAtEnd = (pool: DatabasePool) => {
    undo.push(() => pool.close())
    return pool
  }
  const open = (connections_max: number, more: object = {}) =>
    closedAtEnd(openDatabase({ ...shared, connections_max, ...more }))
  const openStraight = (options: { connections_max: number; statement_ms_max?: number }) =>
    closedAtEnd(
      straightToWorkers(
        openDatabase({ ...shared, ...options }),
        target,
        (worker) => openDatabase({ ...shared, ...options, ...worker }),
        (worker, error) => logger.warn({ worker, err: describeError(error) }, DETOUR),
      ),
    )
  return {
    requests: new SharedPool(openStraight({ connections_max: database_connections_max }), {
      places_max: database_connections_max,
      wait_ms_max,
      refusal: () => new AnnalsError('overloaded', TOO_MUCH_UNDER_WAY),
    }),
    // A project's flushes fit into its share; reading stored entries back for retries may have to wait for it. Who waits
    // for a flush is told after `commit_ms_max`, so one that goes on would only keep others from their turn.
    appends: new SharedPool(openStraight({ connections_max: flushes_max, statement_ms_max: flush_ms_max }), {
      places_max: flushes_max,
      wait_ms_max,
      refusal: () => new DatabaseAway(false, new Error('no connection for appends became free')),
    }),
    reserved: open(RESERVED_CONNECTIONS),
    changes: { database: open(CHANGES_CONNECTIONS, changes), abort },
  }
}

/** `longWork` limits requests that run many statements, so that others get the database's time. */
export function openLifecycle(config: Config, modules: readonly Module[]) {
  const registry = registryOf(modules)
  const longWork = new FairSemaphore({
    places_max: LONG_WORK_MAX,
    wait_ms_max: config.database_wait_ms_max,
    refusal: () => new AnnalsError('overloaded', TOO_MANY_LONG),
  })
  return { registry, erasure: new Erasure(registry.tables), longWork }
}

/** Who may do what: keys, the administrator's sessions in the console, and signed URLs. */
export function openAccess({ token_cache_ms, admin_token }: Config, { reserved, requests }: Pools) {
  return {
    tokens: new TokenDirectory(reserved, token_cache_ms),
    adminSessions:
      admin_token === undefined ? undefined : new AdminSessions(requests.of('sign_in'), admin_token),
    assets: new AssetUrls(reserved),
  }
}

/** Usage, which is written by day until the end: behind all that is counted, and before the connections are closed. */
export function openUsage(pools: Pools, logger: Logger, undo: Undo): UsageDirectory {
  const usage = new UsageDirectory(pools.requests)
  const abort = new AbortController()
  const warn = (error: unknown) =>
    logger.warn({ err: describeError(error) }, 'usage by day could not be written')
  const written = repeat(() => usage.days.write(), USAGE_MS, abort.signal, warn)
  undo.push(async () => {
    abort.abort()
    await written
    await usage.days.write().catch(warn)
  })
  return usage
}

/** Appending to, following and tracing the log. */
export async function openLog(
  config: Config,
  pools: Pools,
  listening: ConnectionTarget | undefined,
  usage: UsageDirectory,
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
    machineOf: pools.reserved.distributed ? (project_id) => pools.appends.machineOf(project_id) : undefined,
    onAppended: (project_id, session_ids) => feed.appended(project_id, session_ids),
    onStored: (project_id, stored) => usage.days.add(project_id, stored),
    onFlush: (report) => metrics.flushed(report),
    onTrouble: (trouble) => {
      metrics.flushTroubled(trouble)
      tracing?.flushTroubled(trouble)
    },
    originOf: tracing && (() => tracing.origin()),
    aroundFlush: tracing && ((taken, run) => tracing.flush(taken, run)),
  })
  undo.push(() => appender.close())
  metrics.watch({ appender, feed, memory, pools: { ...pools, changes: pools.changes.database } })
  return { feed, heartbeat, memory, appender, tracing }
}

/**
 * What is done though nobody waits for it: what looks at changed sessions, over connections of its own, so that it takes
 * none from requests, and what is done every now and then.
 */
export function startBackgroundWork(parts: {
  config: Config
  pools: Pools
  registry: TableRegistry
  erasure: Erasure
  thread: WorkThread
  logger: Logger
  metrics: Metrics
  undo: Undo
  modules: readonly Module[]
}): Changes {
  const { config, pools, registry, erasure, thread, logger, metrics, undo, modules } = parts
  const settle_s = (UNMARKED_MS + config.statement_ms_max) / 1_000 + SETTLE_MARGIN_S
  const { database: background, abort } = pools.changes
  const mended = repeat(
    () => mendAfterClock(background, registry.all_tables),
    CLOCK_MS,
    abort.signal,
    (error) => logger.warn({ err: describeError(error) }, 'waits were not looked at; will try again'),
  )
  undo.push(() => mended)
  const to_private = config.webhooks_to_private === 'true'
  const deliveries = new Deliveries({ database: background, signal: abort.signal, logger, to_private })
  undo.push(() => deliveries.ended())
  const started = { config, database: background, signal: abort.signal, logger, thread }
  for (const module of modules) {
    const work = module.background?.(started)
    undo.push(() => work?.ended())
  }
  const webhooks = webhookConsumer((...added) => deliveries.added(...added))
  const work = { wordsOf: wordsOnThread(thread), findErrors: findErrorsOnThread(thread) }
  const ofModules = modules.flatMap((module) => module.consumers?.(config, work) ?? [])
  const consumers = [...ofModules, webhooks]
  const changes = new Changes({ ...pools.changes, consumers, logger, settle_s })
  undo.push(() => changes.stop())
  watchChanges(metrics.registry, changes)
  const database = pools.requests.of('housekeeping')
  const retention = applyRetention(database, erasure, logger, config.retention_ms, [
    collectBlobs,
    discardAllObjects,
  ])
  undo.push(() => retention.stop())
  return changes
}
