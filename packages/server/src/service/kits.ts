import type { Config } from '@annals/kits/configuration/config.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { defaultMemoryBytes, FairSemaphore, memoryBudget } from '@annals/kits/fairness/fair_queue.js'
import { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import type { Metrics } from '@annals/kits/metrics/metrics.js'
import type { Kits, Module } from '@annals/kits/module.js'
import { objectStoreOf } from '@annals/kits/outgoing/s3_store.js'
import { AvailabilityProbe, DOES_IT_COMMIT } from '@annals/kits/postgres/availability_probe.js'
import { machineByMachine } from '@annals/kits/postgres/citus/machine_by_machine.js'
import { straightToWorkers } from '@annals/kits/postgres/citus/worker_pools.js'
import {
  type ConnectionTarget,
  DatabaseAway,
  type DatabasePool,
  openDatabase,
  SharedPool,
} from '@annals/kits/postgres/database.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import {
  CHANGES_CONNECTIONS,
  RESERVED_CONNECTIONS,
  requestSettings,
} from '@annals/kits/postgres/pool_settings.js'
import { bodyThread } from '@annals/kits/threads/work_thread.js'
import { findTracing } from '@annals/kits/tracing/find_tracing.js'
import type { Logger } from 'pino'
import { BODIES, THREAD_WORK } from './thread_work.js'

/** Share of the wait for the database after which one that does not answer counts as unavailable. */
const PROBE_SHARE = 0.8

/**
 * Shares of the time that an append may be in flight: after the first, it is found out whether anything is committed, and
 * after the second as well, nothing is.
 */
const COMMIT_SHARES = { patience: 0.2, silence: 0.6 }

/** Our timeout must fire before PostgreSQL's. */
const FLUSH_MARGIN_MS = 1_000

const TOO_MUCH_UNDER_WAY =
  'This project has too many requests in flight that need the database. Nothing was done; retry shortly.'

const TOO_MANY_LONG =
  'Too many copies and erasures are in progress at this node. Retry when one of them has ended.'

const DETOUR = 'a worker cannot be reached directly: its projects are served through the coordinator'

const BACKGROUND_WAITS = 'a machine of the cluster does not answer: background work for its projects waits'

/**
 * Long requests at once. A single project may use two of these slots: while it copies a long session, which may take
 * a minute, it can erase a user.
 */
const LONG_WORK_MAX = 4

export interface Opening {
  config: Config
  modules: readonly Module[]
  target: { target: ConnectionTarget; listening: ConnectionTarget | undefined }
  logger: Logger
  metrics: Metrics
  undo: Undo
}

/** Stops the parts that were started, last one first. */
export type Undo = Array<() => unknown>

export interface Pools {
  requests: SharedPool
  appends: SharedPool
  reserved: DatabasePool
  /** For consumers of changes; cut off when they stop. */
  changes: { database: DatabasePool; abort: AbortController }
}

/** Probes that find out whether the database answers and commits, and what happens to connections otherwise. */
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

export function openPools({ config, target: { target }, logger, metrics, undo }: Opening): Pools {
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
  // Those that background work runs on.
  const byMachine = (pool: DatabasePool) =>
    target.distributed
      ? machineByMachine(pool, (machine, error) =>
          logger.warn({ machine, err: describeError(error) }, BACKGROUND_WAITS),
        )
      : pool
  return {
    requests: new SharedPool(byMachine(openStraight({ connections_max: database_connections_max })), {
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
    changes: { database: byMachine(open(CHANGES_CONNECTIONS, changes)), abort },
  }
}

/**
 * Opens what modules work with: connections, the second thread, the memory of requests, and the life of tables.
 * `longWork` limits requests that run many statements, so that others get the database's time.
 */
export async function openKits(
  { config, modules, target, logger, metrics, undo }: Opening,
  pools: Pools,
): Promise<Omit<Kits, 'changes' | 'worker' | 'isReady' | 'isServing'>> {
  const registry = registryOf(modules)
  const tracing = await findTracing()
  undo.push(() => tracing?.close())
  const thread = bodyThread(
    config.body_bytes_max,
    THREAD_WORK,
    new Set(Object.keys(BODIES)),
    new URL('./thread.js', import.meta.url),
  )
  undo.push(() => thread.close())
  const memory = memoryBudget(config.memory_bytes_max || defaultMemoryBytes())
  metrics.watch({ memory, pools: { ...pools, changes: pools.changes.database } })
  return {
    config,
    logger,
    metrics,
    tracing,
    database: pools.requests,
    appends: pools.appends,
    reserved: pools.reserved,
    background: { database: pools.changes.database, signal: pools.changes.abort.signal, logger },
    listening: target.listening,
    thread,
    memory,
    registry,
    erasure: new Erasure(registry.tables),
    longWork: new FairSemaphore({
      places_max: LONG_WORK_MAX,
      wait_ms_max: config.database_wait_ms_max,
      refusal: () => new AnnalsError('overloaded', TOO_MANY_LONG),
    }),
  }
}
