import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { AssetUrls } from '../blobs/asset_urls.js'
import type { Changes } from '../changes/changes.js'
import type { Config } from '../configuration/config.js'
import type { FairSemaphore } from '../fairness/fair_semaphore.js'
import type { MemoryBudget } from '../fairness/memory_budget.js'
import type { Heartbeat } from '../http/answer/heartbeat.js'
import type { Erasure } from '../lifecycle/erase/erasure.js'
import type { TableRegistry } from '../lifecycle/registry.js'
import type { Appender } from '../log/append/appender.js'
import type { Feed } from '../log/follow/feed.js'
import type { Metrics } from '../metrics/metrics.js'
import type { DatabasePool } from '../postgres/database.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import type { AdminSessions } from '../projects/tokens/admin_sessions.js'
import type { TokenDirectory } from '../projects/tokens/token_directory.js'
import type { UsageDirectory } from '../projects/usage.js'
import type { WorkThread } from '../threads/work_thread.js'
import type { Tracing } from '../tracing/tracing.js'

/** What a process knows about its siblings; see `cluster/worker.ts`. */
export interface WorkerParts {
  shareMetrics(registry: Registry): void
  metricsOfAll(): Promise<string | undefined>
}

export interface AppParts {
  config: Config
  logger: Logger
  metrics: Metrics
  /** If the operator's own OpenTelemetry is set up. */
  tracing?: Tracing | undefined
  database: SharedDatabase
  /** Connections for what must always get through: looking up keys, and readiness. */
  reserved: DatabasePool
  registry: TableRegistry
  erasure: Erasure
  /** Slots for requests that run many statements, such as copies and erasures; owners are projects. */
  longWork: FairSemaphore
  /** For work that would hold the event loop too long. */
  thread: WorkThread
  memory: MemoryBudget
  appender: Appender
  /** Runs what looks at sessions that have changed. */
  changes: Pick<Changes, 'prepare' | 'touched'>
  tokens: TokenDirectory
  /** If there is an admin token. */
  adminSessions: AdminSessions | undefined
  assets: AssetUrls
  feed: Feed
  usage: UsageDirectory
  heartbeat: Heartbeat
  /** If this process is one of several that share a port. */
  worker?: WorkerParts | undefined
  /** Whether the service is to be sent requests: false after SIGTERM. */
  isReady: () => boolean
  /** Whether the service accepts requests: false when it stops, after ANNALS_SHUTDOWN_DELAY_MS. */
  isServing: () => boolean
}
