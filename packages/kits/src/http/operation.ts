import type { FastifyContextConfig, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify'
import Type, { type Static, type TSchema } from '#typebox'
import { Empty, NameInPath, Sha256, Strict, UserIdentifier, Uuid } from '../contract/schema.js'
import { ERROR_NAMES, type ErrorName } from '../errors.js'
import { inEnvelope } from './answer/answer.js'
import { KnownTag, unlessKnown } from './answer/entity_tag.js'
import type { AppServer } from './app_server.js'
import { type BodyParts, type TakeBody, takeBody } from './request/read_body.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Only for the API's description. */
    described?: DescribedAnswers
    /** Its body is checked and taken, on the second thread if it is large. */
    takes_body?: boolean
    scope?: OperationScope
    /** See OperationParts. */
    reach?: Reach | undefined
    /** The answer to a token that reaches nothing of what the operation is about; undefined: it is refused. */
    absent?: { error: ErrorName } | { data: string } | undefined
  }
}

/** An operation's scope: `write` includes all that follow it, and `any` is in each. */
export type OperationScope =
  | 'read'
  | 'write'
  | 'append'
  | 'ingest'
  | 'inbox'
  | 'resolve'
  | 'erase'
  | 'admin'
  | 'any'

/** How an operation answers a token that reaches only a part of a project. */
type Reach = 'narrowed' | 'any'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Call = `${Method} /${string}`

/** An operation's answers, for packages/openapi. */
export interface DescribedAnswers {
  status?: number
  description: string
  data: TSchema
  /** Further successful statuses of the same shape, and what they mean. */
  also?: Record<number, string>
  body: boolean
  idempotent: boolean
  /** It has a tag, mostly, and is 304 for who knows it. */
  tagged: boolean
  /** Beside those that follow from what it takes: `<what the first id in the path names>_not_found`, `invalid_cursor`. */
  errors?: ErrorName[]
  message?: string
  /** Its other answers, as documented so far. */
  extend?: (documented: Record<string, unknown>) => Record<string, unknown>
}

interface OperationParts<
  C extends Call,
  Body extends BodyParts | undefined,
  Query extends TSchema,
  Headers extends TSchema,
> extends Pick<Partial<DescribedAnswers>, 'status' | 'also' | 'errors' | 'message' | 'data' | 'extend'> {
  call: C
  id: string
  summary: string
  description?: string
  config?: FastifyContextConfig
  /** By default `read` for GET, and `write` for everything else. */
  scope?: OperationScope
  /**
   * For tokens that reach only a part of a project. `narrowed`: the operation looks at that part only, by itself; `any`: it
   * answers them as it answers keys. By default, they must reach what the path names first, and otherwise find nothing.
   */
  reach?: Reach
  body?: Body
  /** By default what the service takes. */
  body_bytes_max?: number
  querystring?: Query
  headers?: Headers
  returns: string
  /** The path names one thing; list its 404 in `errors`. */
  is_found_as_whole?: true
  /** Returns `data` as JSON, or undefined. */
  json?: Handle<C, Body, Query, Headers, Promise<string> | Promise<void>>
  /** Answers by itself, instead of `json`. */
  handle?: Handle<C, Body, Query, Headers, Promise<unknown>>
  /** Of what the answer is made of: a caller that has it gets 304. The handler shows it: see showVersion. */
  version?: (request: RequestOf<C, Query, Headers>) => Promise<string | undefined>
}

type Handle<C extends Call, Body, Query extends TSchema, Headers extends TSchema, Answer> = (
  request: RequestOf<C, Query, Headers>,
  reply: FastifyReply,
  body: Body extends BodyParts ? ReturnType<Body[1]> : undefined,
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

export type Operation = (app: AppServer) => void

/** Describes operations that the API's description lists under a tag, with everything else that they share. */
export function operationsOf(tag: string, same: { security?: Record<string, string[]>[] } = {}) {
  return <
    C extends Call,
    Q extends TSchema,
    H extends TSchema,
    const B extends BodyParts | undefined = undefined,
  >(
    operation: OperationParts<C, B, Q, H>,
  ): Operation => {
    const { call, id, summary, description, config = {}, querystring, headers, body_bytes_max } = operation
    const [body, take] = (operation.body ?? []) as Partial<BodyParts>
    const { returns, data = Empty, json, handle, version, status, also, message, extend } = operation
    const takeFrom = (request: { body: unknown; bodyText: string; bodyBytes: number }) =>
      (take && takeBody(request, take as TakeBody<unknown, unknown>)) as never
    const [method, url] = call.split(' ') as [Method, string]
    const named = [...url.matchAll(/:(\w+)/g)].map(([, name]) => name!)
    const described = {
      ...{ status, description: returns, data, also, message, extend },
      errors: [...impliedErrors(named, operation), ...(operation.errors ?? [])],
      body: body !== undefined,
      idempotent: has(headers, 'idempotency-key'),
      tagged: version !== undefined,
    } as DescribedAnswers
    const own = (headers as { properties?: Record<string, TSchema> } | undefined)?.properties
    const all = version ? Type.Object({ ...own, ...KnownTag }) : headers
    const given = { params: paramsOf(named), querystring, headers: all, body, description }
    const takes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    const access = accessOf(operation, method, named, data)
    const { scope, reach } = access
    const told = same.security ? {} : { 'x-scope': scope, ...(reach && { 'x-reach': reach }) }
    const schema = { operationId: id, summary, tags: [tag], ...same, ...told, ...takes }
    return (app) => {
      const answers: Handler<C, Q, H> = handle
        ? (request, reply) => handle(request, reply, takeFrom(request))
        : async (request, reply) => {
            const data = await json!(request, reply, takeFrom(request))
            return inEnvelope(reply, data ?? '{}', status)
          }
      const handler = version ? unlessKnown(version, answers) : answers
      const limit = body_bytes_max === undefined ? {} : { bodyLimit: body_bytes_max }
      app.route({
        ...{
          method,
          url,
          schema,
          ...limit,
          config: { ...config, ...access, takes_body: take !== undefined, described },
        },
        handler: handler as RouteHandlerMethod,
      })
    }
  }
}

/** Parameters of paths that are no ids. */
const NO_IDS: Record<string, TSchema> = { identifier: UserIdentifier, sha256: Sha256, name: NameInPath }
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

/** Errors of parameters that are no ids. */
const ABSENT: Record<string, ErrorName> = { identifier: 'user_not_found', sha256: 'blob_not_found' }

/** The callers that a route admits. */
function accessOf(
  { scope, config, reach }: { scope?: OperationScope; config?: FastifyContextConfig; reach?: Reach },
  method: Method,
  [owner]: string[],
  data: TSchema,
) {
  const items = method === 'GET' && has(data, 'items')
  const none = has(data, 'next_cursor') ? '{"items":[],"has_more":false,"next_cursor":""}' : '{"items":[]}'
  const error =
    owner === undefined ? undefined : (ABSENT[owner] ?? (owner.replace(ID, '_not_found') as ErrorName))
  const absent =
    error !== undefined && ERROR_NAMES.includes(error) ? { error } : items ? { data: none } : undefined
  const byMethod = method === 'GET' ? 'read' : 'write'
  return { scope: scope ?? config?.scope ?? byMethod, reach, absent } as const
}

function has(schema: TSchema | undefined, name: string): boolean {
  return name in ((schema as { properties?: object } | undefined)?.properties ?? {})
}

export function allOf(...operations: Operation[]): Operation {
  return (app) => {
    for (const add of operations) add(app)
  }
}
