import type { FastifyContextConfig, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import type { Static, TSchema } from '#typebox'
import { Sha256 } from '../blobs/blob_schema.js'
import { type ResponseParts, responses } from '../contract/responses.js'
import { Empty, Strict, UserIdentifier, Uuid } from '../contract/schema.js'
import type { ErrorName } from '../errors.js'
import type { AppParts } from '../service/service_context.js'
import { inEnvelope } from './answer/answer.js'
import type { AppServer } from './app_server.js'
import { BODIES, type BodyOperation } from './request/bodies.js'
import { type TakeBody, takeBody } from './request/taken_body.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the operation answers: only its description needs that. */
    documented?: () => Record<string, unknown>
  }
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Call = `${Method} /${string}`

interface OperationParts<C extends Call, Id extends string, Query extends TSchema, Headers extends TSchema>
  extends Omit<ResponseParts, 'description' | 'data' | 'body' | 'idempotent'> {
  call: C
  /** BODIES has its body by this. */
  id: Id
  summary: string
  description?: string
  config?: FastifyContextConfig
  /** Its body is a form, which is taken where its parts are at hand. */
  takes_form?: true
  /** By default what the service takes. */
  body_bytes_max?: number
  querystring?: Query
  headers?: Headers
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
  json?: Handle<C, Id, Query, Headers, Promise<string> | Promise<void>>
  /** Answers by itself, instead of `json`. */
  handle?: Handle<C, Id, Query, Headers, Promise<unknown>>
}

/** `body`: what is taken from it. */
type Handle<C extends Call, Id extends string, Query extends TSchema, Headers extends TSchema, Answer> = (
  request: RequestOf<C, Query, Headers>,
  reply: FastifyReply,
  parts: AppParts,
  body: Id extends BodyOperation ? ReturnType<(typeof BODIES)[Id][1]> : undefined,
) => Answer

type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

type RequestOf<C extends Call, Query extends TSchema, Headers extends TSchema> = FastifyRequest<{
  Params: { [Name in NamesIn<C>]: string }
  Querystring: Static<Query>
  Headers: Static<Headers>
}>

type Handler<C extends Call, Query extends TSchema, Headers extends TSchema> = (
  request: RequestOf<C, Query, Headers>,
  reply: FastifyReply,
) => Promise<unknown>

export type Operation = (app: AppServer, parts: AppParts) => void

/** Describes operations that the API's description lists under a tag, with what else is the same of all of them. */
export function operationsOf(tag: string, same: { security?: Record<string, string[]>[] } = {}) {
  return <C extends Call, Id extends string, Q extends TSchema, H extends TSchema>(
    operation: OperationParts<C, Id, Q, H>,
  ): Operation => {
    const { call, id, summary, description, config = {}, querystring, headers, body_bytes_max } = operation
    const [body, take] = operation.takes_form ? [] : bodyOf(id)
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
      const handler: Handler<C, Q, H> = handle
        ? (request, reply) => handle(request, reply, parts, (take && takeBody(request, take)) as never)
        : async (request, reply) => {
            const taken = (take && takeBody(request, take)) as never
            const data = await json!(request, reply, parts, taken)
            return inEnvelope(reply, data ?? '{}', operation.status)
          }
      const limit = body_bytes_max === undefined ? {} : { bodyLimit: body_bytes_max }
      app.route({
        ...{ method, url, schema, ...limit, config: { ...config, documented } },
        handler: handler as RouteHandlerMethod,
      })
    }
  }
}

/** How a body is checked, and what is taken from it. */
function bodyOf(id: string): readonly [schema?: TSchema, take?: TakeBody<unknown, unknown>] {
  return Object.hasOwn(BODIES, id) ? (BODIES[id as BodyOperation] as never) : []
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
