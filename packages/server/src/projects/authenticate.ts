import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../errors.js'
import type { AppServer } from '../http/app_server.js'
import type { OperationScope } from '../http/operation.js'
import type { SharedDatabase } from '../postgres/database.js'
import type { AdminSessions } from './tokens/admin_sessions.js'
import type { Grant } from './tokens/key_look_ups.js'
import { hashToken } from './tokens/token.js'
import type { TokenDirectory } from './tokens/token_directory.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token's grant, once it is known. */
    grant: Grant | null
  }
}

/** A header of the console: the project whose session the request stands for. */
export const OPENS = 'x-annals-console'

/** What tells who a request is from, and whether it is served. */
export interface Authenticator {
  tokens: TokenDirectory
  narrow?: NarrowTokens | undefined
  database: SharedDatabase
  config: { rate_limit_per_second: number }
  /** Refuses a request of a known caller before its body is read. */
  refuse(request: FastifyRequest): AnnalsError | undefined
}

/** Tokens that reach only some sessions: access/. */
export interface NarrowTokens {
  /** Whether a token has their form. */
  isOne(token: string): boolean
  find(token: string): Promise<Grant | undefined>
  /**
   * Refuses a page of another origin, and whatever no token does; a page of the token's own origin may read the answer.
   */
  refuse(
    token: string,
    grant: Grant | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): AnnalsError | undefined
  /** Answers in place of an operation that is about what the token does not reach; undefined: it goes on. */
  answerAbsent(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined>
}

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/

/** Counts a request of a key that may make so many per second; refuses those beyond its limit. */
export type CountRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/**
 * Lets only requests with a project token that has the operation's scope through to the routes of `app`, with `count` no
 * more of them than the token may make.
 */
export function authenticate(
  app: AppServer,
  { tokens, narrow, database, config, refuse }: Authenticator,
  count?: CountRequest,
): void {
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD')
    route.config = { scope: isRead ? 'read' : 'write', ...route.config }
  })
  // Whoever signs out of the console is out at once, on every node.
  const findGrant = (request: FastifyRequest, token: string) => {
    if (request.headers[OPENS] !== undefined) return tokens.findNow(token, request)
    if (narrow?.isOne(token)) return narrow.find(token)
    return tokens.find(token, request.raw.socket, request)
  }
  app.decorateRequest('grant', null)
  app.decorateRequest('database', {
    getter(this: FastifyRequest) {
      return database.of(this.project_id)
    },
  })
  app.decorateRequest('isStillAuthorized', async function (this: FastifyRequest) {
    const grant = await findGrant(this, bearerToken(this)!)
    return grant?.project_id === this.project_id && allows(grant, this.routeOptions.config.scope!)
  })
  // With a callback: for a cached token, which is nearly every one, this costs no turn of the event loop.
  app.addHook('onRequest', (request, reply, done) => {
    const token = bearerToken(request)
    const found = token === undefined ? undefined : findGrant(request, token)
    const proceed = (grant: Grant | undefined) => {
      const refusal =
        token !== undefined && narrow?.isOne(token)
          ? (narrow.refuse(token, grant, request, reply) ?? admit(request, grant))
          : admit(request, grant)
      if (refusal) return done(refusal)
      const requests_max = grant!.rate_limit_per_second ?? config.rate_limit_per_second
      if (!count || requests_max === 0) done(refuse(request))
      else count(request, reply).then(() => done(refuse(request)), done)
    }
    if (found instanceof Promise) found.then(proceed, done)
    else proceed(found)
  })
  if (narrow === undefined) return
  app.addHook('preHandler', (request, reply, done) => {
    if (request.grant!.narrow === undefined) return done()
    // A hook with a callback ends the request by not calling it once it has answered.
    narrow.answerAbsent(request, reply).then((answered) => answered ?? done(), done)
  })
}

/** Stores the request's grant; returns the error if the grant does not allow the operation. */
function admit(request: FastifyRequest, grant: Grant | undefined): AnnalsError | undefined {
  if (!grant) return new AnnalsError('unauthorized')
  // A planted cookie could hold the session of another project, in which the reader of the console would then write.
  const named = request.headers[OPENS]
  if (named !== undefined && named !== grant.project_id) return new AnnalsError('unauthorized')
  request.project_id = grant.project_id
  request.grant = grant
  const scope = request.routeOptions.config.scope!
  // What it does not reach is absent before it is forbidden.
  if (grant.narrow !== undefined || allows(grant, scope)) return undefined
  const { person } = grant
  const lacking = nameOfScope(scope, person !== undefined)
  return new AnnalsError(
    'insufficient_scope',
    person === undefined
      ? `This API key lacks the scope "${lacking}". Use a key that has it.`
      : `You are a ${person.role} of this project, and what you signed in with lacks the scope "${lacking}".`,
  )
}

/** The scope to ask for: no key has `erase` itself. */
export function nameOfScope(scope: OperationScope, is_person = false): OperationScope {
  if (scope !== 'erase') return scope
  return is_person ? 'admin' : 'write'
}

/** Whether what a key or a token allows includes an operation's scope. */
export function allows({ scopes, person }: Pick<Grant, 'scopes' | 'person'>, scope: OperationScope): boolean {
  // A key that writes may erase, too; of people, only administrators.
  if (scope === 'erase' && person) return scopes.has('admin')
  return (
    scope === 'any' || scopes.has(scope) || (scope !== 'read' && scope !== 'admin' && scopes.has('write'))
  )
}

/** The token of an Authorization header in the only accepted form; undefined without one. */
export function bearerToken(request: Pick<IncomingMessage, 'headers'>): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1]
}

/** Lets only requests with the admin token, or with that of an open session, through to the routes of `app`. */
export function authenticateAdmin(app: AppServer, sessions: AdminSessions): void {
  const expected = hashToken(sessions.admin_token)
  app.addHook('onRequest', async (request) => {
    // Hashes have the same length and reveal nothing about the token, and comparing them takes constant time.
    const token = bearerToken(request)
    const is_allowed =
      token !== undefined && (timingSafeEqual(hashToken(token), expected) || (await sessions.isOpen(token)))
    if (!is_allowed) {
      throw new AnnalsError(
        'unauthorized',
        'The admin token is required: send it as "Authorization: Bearer <ANNALS_ADMIN_TOKEN>".',
      )
    }
  })
}

/**
 * The answer to a change: the resource, for a key that may read it; otherwise what the caller sent, in the same
 * shape, with only ids and times added by the service.
 */
export function mayRead(request: FastifyRequest): boolean {
  return request.grant!.scopes.has('read')
}
