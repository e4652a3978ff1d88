import type { FastifyContextConfig, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import type { Static, TSchema } from '#typebox'
import { Sha256 } from '../blobs/blob_schema.js'
import { type ResponseParts, responses } from '../contract/responses.js'
import { Empty, Strict, UserIdentifier, Uuid } from '../contract/schema.js'
import type { ErrorName } from '../errors.js'
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
type Call = `${Method} /${string}`

interface OperationParts<C extends Call, Query extends TSchema, Headers extends TSchema, Body extends TSchema>
  extends Omit<ResponseParts, 'description' | 'data' | 'body' | 'idempotent'> {
  call: C
  id: string
  summary: string
  description?: string
  config?: FastifyContextConfig
  /** By default what the service takes. */
  body_bytes_max?: number
  querystring?: Query
  headers?: Headers
  body?: Body
  /** What a success means. */
  returns: string
  /** What a success has; by default nothing. */
  data?: TSchema
  /** Beside those that follow from what it takes: `<what the first id in the path names>_not_found`, `invalid_cursor`. */
  errors?: ErrorName[]
  /** What the path names is found, or not, as a whole: `errors` says so of it. */
  is_found_as_whole?: true
  /** What else it may answer, by what is documented so far. */
  extend?: (documented: Record<string, unknown>) => Record<string, unknown>
  /** Gives the data of a success as JSON text; nothing for none. */
  json?: (
    request: RequestOf<C, Query, Headers, Body>,
    reply: FastifyReply,
    parts: AppParts,
  ) => Promise<string> | Promise<void>
  /** Answers by itself, instead of `json`. */
  handle?: (
    request: RequestOf<C, Query, Headers, Body>,
    reply: FastifyReply,
    parts: AppParts,
  ) => Promise<unknown>
}

type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

type RequestOf<
  C extends Call,
  Query extends TSchema,
  Headers extends TSchema,
  Body extends TSchema,
> = FastifyRequest<{
  Params: { [Name in NamesIn<C>]: string }
  Querystring: Static<Query>
  Headers: Static<Headers>
  Body: Static<Body>
}>

export type Operation = (app: AppServer, parts: AppParts) => void

/** Describes operations that the API's description lists under a tag, with what else is the same of all of them. */
export function operationsOf(tag: string, same: { security?: Record<string, string[]>[] } = {}) {
  return <C extends Call, Q extends TSchema, H extends TSchema, B extends TSchema>(
    operation: OperationParts<C, Q, H, B>,
  ): Operation => {
    const {
      call,
      id,
      summary,
      description,
      config = {},
      querystring,
      headers,
      body,
      body_bytes_max,
    } = operation
    const { returns, data = Empty, extend = (documented) => documented, json, handle, ...more } = operation
    const [method, url] = call.split(' ') as [Method, string]
    const named = [...url.matchAll(/:(\w+)/g)].map(([, name]) => name!)
    const documented = () => {
      const errors = [...impliedErrors(named, operation), ...(more.errors ?? [])]
      const idempotent = has(headers, 'idempotency-key')
      const parts = { ...more, errors, description: returns, data, body: body !== undefined, idempotent }
      return extend(responses(parts))
    }
    const given = { params: paramsOf(named), querystring, headers, body, description }
    const takes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const schema = { operationId: id, summary, tags: [tag], ...same, ...takes }
    return (app, parts) => {
      type Handler = (request: RequestOf<C, Q, H, B>, reply: FastifyReply) => Promise<unknown>
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

/** Parameters of paths that are no ids. */
const NO_IDS: Record<string, TSchema> = { identifier: UserIdentifier, sha256: Sha256 }
const ID = /_id$/

function paramsOf(names: string[]): TSchema | undefined {
  const id = (name: string) => Uuid(`The ${name.replace(ID, '').replaceAll('_', ' ')}.`)
  return names.length > 0
    ? Strict(Object.fromEntries(names.map((name) => [name, NO_IDS[name] ?? id(name)])))
    : undefined
}

function impliedErrors(
  [owner = '']: string[],
  { querystring, is_found_as_whole = false }: { querystring?: TSchema; is_found_as_whole?: boolean },
): ErrorName[] {
  return [
    ...(has(querystring, 'cursor') ? ['invalid_cursor' as const] : []),
    ...(ID.test(owner) && !is_found_as_whole ? [owner.replace(ID, '_not_found') as ErrorName] : []),
  ]
}

function has(schema: TSchema | undefined, name: string): boolean {
  return name in ((schema as { properties?: object } | undefined)?.properties ?? {})
}

export function allOf(...operations: Operation[]): Operation {
  return (app, parts) => {
    for (const add of operations) add(app, parts)
  }
}
