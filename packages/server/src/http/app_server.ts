// What the schema of an operation has besides: its tags, its id, whether it is hidden.
import type {} from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Database } from '../postgres/database.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller's project: every query of the request is bound to it. */
    project_id: string
    /** The database, with the project's share of the connections. */
    readonly database: Database
    /** Whether the caller may still read what was asked for: long answers ask for it. */
    isStillAuthorized?(): Promise<boolean>
  }
}

/** The HTTP application, with the types of its schemas. */
export type AppServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>
