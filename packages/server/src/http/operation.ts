import type { FastifyContextConfig, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import type { Static, TSchema } from '#typebox'
import { type ResponseParts, responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import { answer } from './answer/answer.js'
import type { AppServer } from './app_server.js'
import type { AppParts } from './service_context.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the operation answers: only its description needs that. */
    documented?: () => Record<string, unknown>
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** An operation of the API: where it is, what it takes and gives, and what it does. */
interface OperationParts<
  Params extends TSchema,
  Query extends TSchema,
  Headers extends TSchema,
  Body extends TSchema,
> extends Omit<ResponseParts, 'description' | 'data' | 'body' | 'idempotent'> {
  call: `${Method} /${string}`
  id: string
  summary: string
  description?: string
  config?: FastifyContextConfig
  /** By default what the service takes. */
  body_bytes_max?: number
  params?: Params
  querystring?: Query
  headers?: Headers
  body?: Body
  /** What a success means. */
  returns: string
  /** What a success has; by default nothing. */
  data?: TSchema
  /** What else it may answer, by what is documented so far. */
  extend?: (documented: Record<string, unknown>) => Record<string, unknown>
  /** Gives the data of a success as JSON text; nothing for none. */
  json?: (
    request: RequestOf<Params, Query, Headers, Body>,
    reply: FastifyReply,
    parts: AppParts,
  ) => Promise<string> | Promise<void>
  /** Answers by itself, instead of `json`. */
  handle?: (
    request: RequestOf<Params, Query, Headers, Body>,
    reply: FastifyReply,
    parts: AppParts,
  ) => Promise<unknown>
}

type RequestOf<
  Params extends TSchema,
  Query extends TSchema,
  Headers extends TSchema,
  Body extends TSchema,
> = FastifyRequest<{
  Params: Static<Params>
  Querystring: Static<Query>
  Headers: Static<Headers>
  Body: Static<Body>
}>

/** Adds an operation to an application. */
export type Operation = (app: AppServer, parts: AppParts) => void

/** Describes operations that the API's description lists under a tag, with what else is the same of all of them. */
export function operationsOf(tag: string, same: { security?: Record<string, string[]>[] } = {}) {
  return <P extends TSchema, Q extends TSchema, H extends TSchema, B extends TSchema>(
    operation: OperationParts<P, Q, H, B>,
  ): Operation => {
    const {
      call,
      id,
      summary,
      description,
      config = {},
      params,
      querystring,
      headers,
      body,
      body_bytes_max,
    } = operation
    const { returns, data = Empty, extend = (documented) => documented, json, handle, ...more } = operation
    const [method, url] = call.split(' ') as [Method, string]
    const idempotent =
      'idempotency-key' in ((headers as { properties?: object } | undefined)?.properties ?? {})
    const documented = () =>
      extend(responses({ ...more, description: returns, data, body: body !== undefined, idempotent }))
    const given = { params, querystring, headers, body, description }
    const takes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const schema = { operationId: id, summary, tags: [tag], ...same, ...takes }
    return (app, parts) => {
      type Handler = (request: RequestOf<P, Q, H, B>, reply: FastifyReply) => Promise<unknown>
      const answerJson: Handler = async (request, reply) =>
        answer(reply, (await json!(request, reply, parts)) ?? '{}', operation.status)
      const handler: Handler = handle ? (request, reply) => handle(request, reply, parts) : answerJson
      const limit = body_bytes_max === undefined ? {} : { bodyLimit: body_bytes_max }
      app.route({
        ...{ method, url, schema, ...limit, config: { ...config, documented } },
        handler: handler as RouteHandlerMethod,
      })
    }
  }
}

/** Adds all of them, in this order. */
export function allOf(...operations: Operation[]): Operation {
  return (app, parts) => {
    for (const add of operations) add(app, parts)
  }
}
