import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../configuration/config.js'
import type { FairSemaphore } from '../fairness/fair_semaphore.js'
import type { MemoryBudget } from '../fairness/memory_budget.js'
import type { Appender } from '../log/append/appender.js'
import type { Feed } from '../log/follow/feed.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Database } from '../postgres/database.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import type { TokenDirectory } from '../projects/tokens/token_directory.js'
import type { UsageDirectory } from '../projects/usage.js'
import type { Tracing } from '../tracing/tracing.js'
import type { Heartbeat } from './answer/heartbeat.js'
import type { WorkThread } from './work_thread/work_thread.js'

/** What a process knows of those that serve beside it; see `cluster/worker.ts`. */
export interface WorkerParts {
  shareMetrics(registry: Registry): void
  metricsOfAll(): Promise<string | undefined>
}

/** What the HTTP side is made of; service/service.ts constructs the parts. */
export interface AppParts {
  config: Config
  logger: Logger
  metrics: Metrics
  /** Where the user's own OpenTelemetry is there. */
  tracing?: Tracing | undefined
  database: SharedDatabase
  /** Connections for what must get through whatever else goes on: looking keys up, and whether the service is ready. */
  reserved: Database
  /** A place for each request that works in many statements, such as a copy or an erasure; its owners are projects. */
  longWork: FairSemaphore
  /** For what takes long on the event loop. */
  thread: WorkThread
  memory: MemoryBudget
  appender: Appender
  tokens: TokenDirectory
  feed: Feed
  usage: UsageDirectory
  heartbeat: Heartbeat
  /** Where this process is one of several that share a port. */
  worker?: WorkerParts | undefined
  /** Whether the service takes requests: false from SIGTERM on. */
  isServing: () => boolean
}

export type AppServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>
