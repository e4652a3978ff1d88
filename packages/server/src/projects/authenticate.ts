import type { IncomingMessage } from 'node:http'
import { AnnalsError } from '@annals/kits/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { OperationScope } from '@annals/kits/http/operation.js'
import type { Queryable, SharedDatabase } from '@annals/kits/postgres/database.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { type Grant, KeyLookUps, type LookUp } from './tokens/key_look_ups.js'
import { hashToken, isMistyped } from './tokens/token.js'

declare module 'fastify' {
  interface FastifyRequest {
    grant: Grant | null
  }
}

/** A header of the console: the project in whose session the request is sent. */
export const OPENS = 'x-annals-console'

/** Identifies the caller of a request and decides whether it is served. */
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
  /** How all of them begin, and no API key. */
  readonly beginning: string
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
  // Signing out of the console takes effect at once, on every node.
  const findGrant = (request: FastifyRequest, token: string) => {
    if (request.headers[OPENS] !== undefined) return tokens.findNow(token, request)
    if (narrow && token.startsWith(narrow.beginning)) return narrow.find(token)
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
        narrow && token?.startsWith(narrow.beginning)
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
  // Things out of its reach are absent rather than forbidden.
  if (grant.narrow !== undefined || allows(grant, scope)) return undefined
  const { person } = grant
  const lacking = nameOfScope(scope, person !== undefined)
  return new AnnalsError(
    'insufficient_scope',
    person === undefined
      ? `This API key lacks the scope "${lacking}". Use a key that has it: \`annals token create --name <name> --scopes ${[...grant.scopes, lacking].join(',')}\` creates one.`
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

/**
 * The answer to a change: the resource, for a key that may read it; otherwise what the caller sent, in the same
 * shape, with only ids and times added by the service.
 */
export function mayRead(request: FastifyRequest): boolean {
  return request.grant!.scopes.has('read')
}

interface HashedToken {
  token: string
  hash: Buffer
  /** The hash as a key. */
  id: string
}

const TOKENS_REMEMBERED_MAX = 10_000
/** An unknown token is looked up again soon: it may be about to be created. */
const UNKNOWN_KEPT_MS = 1_000

/**
 * Caches for a short time which project a token belongs to, so that a request costs no query and every node notices a
 * revocation within `kept_ms`. From half that age on, an entry in use is refreshed in the background. The cache holds
 * hashes. Of tokens themselves, only the last one of each open connection is kept, because the next request probably
 * uses it, and hashing it would be one of the most expensive parts of a small append.
 *
 * Invalid tokens are cached and looked up separately, so that guesses evict no valid token, and delay no valid
 * token's refresh.
 */
export class TokenDirectory {
  private readonly valid = new LRUCache<string, LookUp & { grant: Grant }>({ max: TOKENS_REMEMBERED_MAX })
  /** When tokens were found to be invalid. */
  private readonly refused = new LRUCache<string, number>({ max: TOKENS_REMEMBERED_MAX })
  private readonly hashes = new WeakMap<object, HashedToken>()
  private readonly pending = new Map<string, { since: number; lookUp: Promise<LookUp> }>()
  private readonly renewals: KeyLookUps
  private readonly firstLookUps: KeyLookUps

  constructor(
    database: Queryable,
    private readonly kept_ms: number,
  ) {
    this.renewals = new KeyLookUps(database)
    this.firstLookUps = new KeyLookUps(database)
  }

  /**
   * The grant of a token, undefined if it is unknown, revoked or expired; synchronously if it is cached.
   * @param connection that it came over, if any
   * @param caller whose address has a share of the look-ups of uncached tokens
   * @throws AnnalsError unavailable, overloaded
   */
  find(
    token: string,
    connection?: object,
    caller?: { readonly address: string },
  ): Grant | undefined | Promise<Grant | undefined> {
    const { hash, id } = this.hashed(token, connection)
    const known = this.valid.get(id)
    if (!known) {
      if (this.isRefused(id) || isMistyped(token)) return undefined
      return this.lookUp(id, hash, caller).then(({ grant }) => stillValid(grant))
    }
    const age = performance.now() - known.looked_up_at
    if (age >= this.kept_ms) return this.lookUp(id, hash).then(({ grant }) => stillValid(grant))
    // A failure here is not this caller's: once the entry is too old, the next caller gets the error.
    if (age >= this.kept_ms / 2) this.lookUp(id, hash).catch(() => {})
    return stillValid(known.grant)
  }

  /** The same as the database has it now. */
  async findNow(token: string, caller: { readonly address: string }): Promise<Grant | undefined> {
    if (isMistyped(token)) return undefined
    const { hash, id } = this.hashed(token, undefined)
    const found = await this.firstLookUps.find(hash, caller.address)
    this.remember(id, found)
    return stillValid(found.grant)
  }

  /** The project of a cached token, however old the entry: only good for counting. */
  projectOf(token: string, connection: object): string | undefined {
    return this.valid.peek(this.hashed(token, connection).id)?.grant.project_id
  }

  private hashed(token: string, connection: object | undefined): HashedToken {
    const last = connection && this.hashes.get(connection)
    if (last && isSameToken(last.token, token)) return last
    const hash = hashToken(token)
    const hashed = { token, hash, id: hash.toString('latin1') }
    if (connection) this.hashes.set(connection, hashed)
    return hashed
  }

  private isRefused(id: string): boolean {
    const looked_up_at = this.refused.get(id)
    if (looked_up_at === undefined) return false
    return performance.now() - looked_up_at < Math.min(this.kept_ms, UNKNOWN_KEPT_MS)
  }

  private lookUp(id: string, hash: Buffer, caller?: { readonly address: string }): Promise<LookUp> {
    const under_way = this.pending.get(id)
    // A look-up that took too long may return a grant from before a revocation.
    if (under_way && performance.now() - under_way.since < this.kept_ms) return under_way.lookUp
    const asked = this.valid.has(id)
      ? this.renewals.find(hash, '')
      : this.firstLookUps.find(hash, caller?.address ?? '')
    const lookUp = asked
      .then((found) => {
        this.remember(id, found)
        return found
      })
      .finally(() => {
        if (this.pending.get(id)?.lookUp === lookUp) this.pending.delete(id)
      })
    this.pending.set(id, { since: performance.now(), lookUp })
    return lookUp
  }

  private remember(id: string, { grant, looked_up_at }: LookUp): void {
    if (grant) {
      this.valid.set(id, { grant, looked_up_at })
    } else {
      this.valid.delete(id)
      this.refused.set(id, looked_up_at)
    }
  }
}

function stillValid(grant: Grant | undefined): Grant | undefined {
  return grant?.expires_at_ms !== undefined && grant.expires_at_ms <= Date.now() ? undefined : grant
}

/** Whether two tokens are equal, in time that depends only on their length: a proxy's callers share connections. */
export function isSameToken(one: string, other: string): boolean {
  if (one.length !== other.length) return false
  let difference = 0
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at)
  return difference === 0
}
