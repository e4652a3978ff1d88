import type { Logger } from 'pino'
import type { TSchema } from '#typebox'
import type { Changes } from './changes/changes.js'
import type { Consumer } from './changes/consumer.js'
import type { Config } from './configuration/config.js'
import type { FairSemaphore, MemoryBudget } from './fairness/fair_queue.js'
import type { AppServer } from './http/app_server.js'
import type { OperationLinks } from './http/openapi/openapi_links.js'
import type { Operation } from './http/operation.js'
import type { Background } from './lifecycle/background.js'
import type { Erasure } from './lifecycle/erase/erasure.js'
import type { TableRegistry } from './lifecycle/registry.js'
import type { TableOwner } from './lifecycle/table.js'
import type { Metrics } from './metrics/metrics.js'
import type { Siblings } from './metrics/metrics_routes.js'
import type { ConnectionTarget, DatabasePool, SharedPool } from './postgres/database.js'
import type { WorkThread } from './threads/work_thread.js'
import type { Tracing } from './tracing/tracing.js'

/**
 * A module: a folder that owns tables, answers requests, and opens itself. It says in this one object all that the
 * service needs to know of it. `service/modules.ts` lists all of them.
 */
export interface Module<Own extends OpenModule = OpenModule> extends TableOwner {
  /** Opens what works in a service; commands, which serve nothing, do without. */
  open?(kits: Kits, opened: Opened): Own
}

/** A module that works in a service, with everything that it offers to later modules. */
export interface OpenModule {
  routes?(): Promise<ModuleRoutes>
  consumers?: readonly Consumer[]
  /** Starts background work; stops on abort. */
  background?(): { ended(): Promise<unknown> }
  /** Called when no request is under way any more; those opened last close first. */
  close?(): unknown
}

/** Returns an earlier module as it was opened. @throws Error if it was not opened before */
export type Opened = <Own extends OpenModule>(module: Module<Own>) => Own

/** Shared by all modules. None of it knows any of them. */
export interface Kits {
  config: Config
  logger: Logger
  metrics: Metrics
  /** If the operator's own OpenTelemetry is set up. */
  tracing: Tracing | undefined
  /** For everything that requests do except appends. */
  database: SharedPool
  /** For appends, so that slow lists never delay them. */
  appends: SharedPool
  /** For short queries that must always get through: looking up keys, and readiness. */
  reserved: DatabasePool
  background: Background
  /** Where notifications of the database can be heard; undefined behind a pooler that has none. */
  listening: ConnectionTarget | undefined
  /** For work that would hold the event loop too long. */
  thread: WorkThread
  memory: MemoryBudget
  registry: TableRegistry
  erasure: Erasure
  /** Slots for requests that run many statements, such as copies and erasures; owners are projects. */
  longWork: FairSemaphore
  /** Runs what looks at sessions that have changed. */
  changes: Pick<Changes, 'prepare' | 'touched' | 'hurry'>
  /** If this process is one of several that share a port. */
  worker: Siblings | undefined
  /** Whether the service is to be sent requests: false after SIGTERM. */
  isReady: () => boolean
  /** Whether the service accepts requests: false when it stops, after ANNALS_SHUTDOWN_DELAY_MS. */
  isServing: () => boolean
}

/** Beside the operations' own schemas, for packages/openapi. */
export interface Described {
  /** Schemas that answers refer to by their `$id`. */
  schemas?: readonly TSchema[]
  /** Operations whose bodies are bytes, and of which types. */
  byte_bodies?: Readonly<Record<string, readonly string[]>>
  /** The forms that operations take. */
  form_bodies?: Readonly<Record<string, TSchema>>
  /** Where the answers of operations lead: which other operations take an id that is in them. */
  links?: Readonly<Record<string, OperationLinks>>
}

export interface ModuleRoutes extends Described {
  /** Adds the operations below /api/v1, for callers with a project's key. */
  project?: Operation
  /** Adds what needs a project's key and is no part of the API. */
  keyed?: Operation
  /** Adds what needs no key. */
  open?(app: AppServer): void | Promise<void>
  /** Adds the operations below /admin/v1, for the operator. */
  admin?: Operation
}
