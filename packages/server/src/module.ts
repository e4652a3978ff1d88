import type { RuleFindings } from '@annals/learning'
import type { Logger } from 'pino'
import type { TSchema } from '#typebox'
import type { Consumer, WordsOf } from './changes/consumer.js'
import type { Config } from './configuration/config.js'
import type { AppServer } from './http/app_server.js'
import type { OperationLinks } from './http/openapi/openapi_links.js'
import type { TableOwner } from './lifecycle/table.js'
import type { Database, Row } from './postgres/database.js'
import type { AppParts } from './service/service_context.js'
import type { WorkThread } from './threads/work_thread.js'

/**
 * A module: a folder that owns tables and answers requests, and says in this one object all that the service needs to know
 * of it. `service/modules.ts` has all of them, each behind those whose tables its own refer to.
 */
export interface Module extends TableOwner {
  /** Loads what answers its requests: commands that serve nothing do without. */
  routes?(): Promise<ModuleRoutes>
  /** What looks at changed sessions for it. */
  consumers?(config: Config, work: ConsumerWork): readonly Consumer[]
  /** Starts what it does though nobody waits for it, until the signal goes off. */
  background?(parts: BackgroundParts): { ended(): Promise<void> }
}

/** What consumers do that may take long on what is in entries. */
export interface ConsumerWork {
  wordsOf: WordsOf
  findErrors: (project_id: string, rows: Row[], known_seq: number) => Promise<RuleFindings>
}

export interface BackgroundParts {
  config: Config
  database: Database
  signal: AbortSignal
  logger: Logger
  thread: WorkThread
}

export interface ModuleRoutes {
  /** Adds the operations below /api/v1, for whoever has a project's key. */
  project?(app: AppServer, parts: AppParts): void
  /** Adds what needs no key. */
  open?(app: AppServer, parts: AppParts): void
  /** Adds the operations below /admin/v1, for the operator. */
  admin?(app: AppServer, parts: AppParts): void
  /** Schemas that answers refer to by their `$id`. */
  schemas?: readonly TSchema[]
  byte_bodies?: readonly string[]
  form_bodies?: Readonly<Record<string, TSchema>>
  /** Where the answers of operations lead: which other operations take an id that is in them. */
  links?: Readonly<Record<string, OperationLinks>>
}
