import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { OPENS } from '../console_api/console_requests.js'
import { AnnalsError } from '../errors.js'
import type { AppServer } from '../http/app_server.js'
import type { Database } from '../postgres/database.js'
import type { AppParts } from '../service/service_context.js'
import type { AdminSessions } from './tokens/admin_sessions.js'
import type { Grant } from './tokens/key_look_ups.js'
import { hashToken, type Scope } from './tokens/token.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token's project: every query of the request is bound to it. */
    project_id: string
    /** The token's grant, once it is known. */
    grant: Grant | null
    /** The database, with the project's share of the connections. */
    readonly database: Database
    /** Whether the token is still valid for what it allowed when the request came: long answers ask for it. */
    isStillAuthorized(): Promise<boolean>
  }
  interface FastifyContextConfig {
    /** The route appends to a log: if its project is behind, it is refused before its body is read. */
    appends?: boolean
    /** The scope that the token needs: `read` for GET and `write` for all else, unless the route says otherwise. */
    scope?: Scope | 'any'
  }
}

const BEARER = /^Bearer ([\x21-\x7e]{1,512})$/

/** Counts a request of a key that may make so many per second; refuses those beyond its limit. */
export type CountRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/**
 * Lets only requests with a project token that has the operation's scope through to the routes of `app`, with `count` no
 * more of them than the token may make. Then refuses appends that would wait too long, at the cost of reading their headers.
 */
export function authenticate(
  app: AppServer,
  { tokens, database, appender, config }: Pick<AppParts, 'tokens' | 'database' | 'appender' | 'config'>,
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
  const refuseBehind = ({ routeOptions, project_id }: FastifyRequest) =>
    routeOptions.config.appends && appender.isBehind(project_id) ? new AnnalsError('overloaded') : undefined
  // With a callback: for a cached token, which is nearly every one, this costs no turn of the event loop.
  app.addHook('onRequest', (request, reply, done) => {
    const token = bearerToken(request)
    const found = token === undefined ? undefined : findGrant(request, token)
    const proceed = (grant: Grant | undefined) => {
      const refusal = admit(request, grant)
      if (refusal) return done(refusal)
      const requests_max = grant!.rate_limit_per_second ?? config.rate_limit_per_second
      if (!count || requests_max === 0) done(refuseBehind(request))
      else count(request, reply).then(() => done(refuseBehind(request)), done)
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
  return scope === 'any' || scopes.has(scope)
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
