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
import type { Config } from '../config.js'
import type { Database } from '../database/database.js'
import type { SharedDatabase } from '../database/shared_pool.js'
import type { FairSemaphore } from '../fair_semaphore.js'
import type { Appender } from '../log/appender.js'
import type { Feed } from '../log/feed.js'
import type { MemoryBudget } from '../memory/memory_budget.js'
import type { Metrics } from '../metrics/metrics.js'
import type { UsageDirectory } from '../resources/usage.js'
import type { TokenDirectory } from '../tokens/token_directory.js'
import type { Tracing } from '../tracing/tracing.js'
import type { Heartbeat } from './heartbeat.js'
import type { WorkThread } from './work_thread/work_thread.js'

/** What a process knows of those that serve beside it; see `workers/worker.ts`. */
export interface WorkerParts {
  shareMetrics(registry: Registry): void
  metricsOfAll(): Promise<string | undefined>
}

/** What the HTTP side is made of; main.ts constructs the parts. */
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
