import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../errors.js'
import type { AppServer } from '../http/app_server.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import type { AdminSessions } from './tokens/admin_sessions.js'
import type { Grant } from './tokens/key_look_ups.js'
import { hashToken, type Scope } from './tokens/token.js'
import type { TokenDirectory } from './tokens/token_directory.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token's grant, once it is known. */
    grant: Grant | null
  }
  interface FastifyContextConfig {
    /** The scope that the token needs: `read` for GET and `write` for all else, unless the route says otherwise. `write` includes `ingest`. */
    scope?: Scope | 'any'
  }
}

/** A header of the console: the project whose session the request stands for. */
export const OPENS = 'x-annals-console'

/** What tells who a request is from, and whether it is served. */
export interface Authenticator {
  tokens: TokenDirectory
  database: SharedDatabase
  config: { rate_limit_per_second: number }
  /** Refuses a request of a known caller before its body is read. */
  refuse(request: FastifyRequest): AnnalsError | undefined
}

const BEARER = /^Bearer ([\x21-\x7e]{1,512})$/

/** Counts a request of a key that may make so many per second; refuses those beyond its limit. */
export type CountRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/**
 * Lets only requests with a project token that has the operation's scope through to the routes of `app`, with `count` no
 * more of them than the token may make.
 */
export function authenticate(
  app: AppServer,
  { tokens, database, config, refuse }: Authenticator,
  count?: CountRequest,
): void {
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD')
    route.config = { scope: isRead ? 'read' : 'write', ...route.config }
  })
  // Whoever signs out of the console is out at once, on every node.
  const findGrant = (request: FastifyRequest, token: string) =>
    request.headers[OPENS] === undefined
      ? tokens.find(token, request.raw.socket, request)
      : tokens.findNow(token, request)
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
      const refusal = admit(request, grant)
      if (refusal) return done(refusal)
      const requests_max = grant!.rate_limit_per_second ?? config.rate_limit_per_second
      if (!count || requests_max === 0) done(refuse(request))
      else count(request, reply).then(() => done(refuse(request)), done)
    }
    if (found instanceof Promise) found.then(proceed, done)
    else proceed(found)
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
  if (allows(grant, scope)) return undefined
  return new AnnalsError(
    'insufficient_scope',
    `This API key lacks the scope "${scope}". Use a key that has it.`,
  )
}

function allows({ scopes }: Grant, scope: Scope | 'any'): boolean {
  return scope === 'any' || scopes.has(scope) || (scope === 'ingest' && scopes.has('write'))
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
