import { createHash } from 'node:crypto'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import type { Tenant } from '@annals/kits/postgres/database.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { nameOfScope } from '../projects/authenticate.js'
import type { Sessions } from '../projects/tokens/key_look_ups.js'
import { FIND_OWN_BLOBS, HAS_SESSION, IS_BELOW, IS_OF_USER, type ReachedBy } from './access_queries.js'

/** No session has this id. */
export const NO_SESSION = '00000000-0000-0000-0000-000000000000'
/** Live tails of one token at a node: a browser opens at most six connections to a host. */
const TAILS_MAX = 8

/**
 * Answers in place of an operation that a token does not reach, as if what it is about did not exist: nothing is looked up
 * that could tell one from the other.
 */
export async function answerAbsent(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const { grant, params, routeOptions } = request
  const { reach, absent, scope } = routeOptions.config
  if (reach === 'any') return undefined
  const first = Object.entries((params ?? {}) as Record<string, string>)[0]
  if (first?.[0] === 'session_id') {
    if (!(await reaches(request, first[1].toLowerCase()))) throw notFound('session')
  } else if (reach !== 'narrowed') {
    if (absent && 'data' in absent) return answer(reply, absent.data)
    if (absent) throw notFound(absent.error.replace('_not_found', '') as Parameters<typeof notFound>[0])
  }
  if (!grant!.scopes.has(scope!))
    throw new AnnalsError('insufficient_scope', `This token lacks the scope "${nameOfScope(scope!)}".`)
  return undefined
}

/**
 * Sessions that tokens of a user or a parent were found to reach. What a session belongs to never changes; one that was
 * deleted meanwhile is not there for the operation itself.
 */
const reached = new LRUCache<string, true>({ max: 10_000, ttl: 5_000 })

/** Whether the token of a request reaches a session, which may or may not exist. A key reaches all of its project. */
export async function reaches(request: FastifyRequest, session_id: string): Promise<boolean> {
  const { grant, database, project_id } = request
  const reach = grant!.narrow?.reach
  if (!reach) return true
  if ('session_id' in reach) return reach.session_id === session_id
  const place = `${project_id} ${session_id} ${grant!.narrow!.reach_text}`
  if (reached.get(place)) return true
  const [row] =
    'user' in reach
      ? await database.query(IS_OF_USER, [project_id, session_id, reach.user])
      : await database.query(IS_BELOW, [project_id, session_id, reach.parent])
  if (row) reached.set(place, true)
  return row !== undefined
}

interface SessionFilters {
  user?: string
  parent?: string
  session_id?: string
}

/**
 * The filters of a list of sessions or of what is in them, narrowed to what the token of a request reaches. What it does
 * not reach is asked for by an id that no session has.
 */
export async function narrowedFilters<Query extends SessionFilters>(
  request: FastifyRequest,
  query: Query,
): Promise<Query> {
  const reach = request.grant!.narrow?.reach
  if (!reach) return query
  if ('session_id' in reach) {
    const { session_id = reach.session_id } = query
    return {
      ...query,
      session_id: session_id.toLowerCase() === reach.session_id ? reach.session_id : NO_SESSION,
    }
  }
  if ('user' in reach) {
    const isAnother = query.user !== undefined && query.user !== reach.user
    return { ...query, user: reach.user, ...(isAnother && { parent: NO_SESSION, session_id: NO_SESSION }) }
  }
  const { parent = reach.parent, session_id } = query
  if (session_id !== undefined) {
    const isReached = await reaches(request, session_id.toLowerCase())
    return { ...query, session_id: isReached ? session_id : NO_SESSION }
  }
  const isReached =
    parent.toLowerCase() === reach.parent || (parent !== 'none' && (await reaches(request, parent)))
  return { ...query, parent: isReached ? parent : NO_SESSION }
}

/**
 * The only sessions that a list of what is in them is about: the one that is asked for, or those that the token of a request
 * reaches; undefined: it is about all. So a token's page looks at nothing else, and its cursor says nothing of others.
 */
export async function reachOfList(
  request: FastifyRequest,
  session_id?: string,
): Promise<[by: ReachedBy, of: string] | undefined> {
  if (session_id !== undefined)
    return ['session_id', (await reaches(request, session_id)) ? session_id : NO_SESSION]
  const reach = request.grant!.narrow?.reach
  return reach && (Object.entries(reach)[0] as [ReachedBy, string])
}

/** @throws AnnalsError insufficient_scope, session_not_found: a token may not create such a session */
export async function refuseSession(
  request: FastifyRequest,
  { user, parent, use_uuid }: Record<'user' | 'parent' | 'use_uuid', string | null | undefined>,
): Promise<void> {
  const reach = request.grant!.narrow?.reach
  if (!reach) return
  const refuse = (sentence: string) => {
    throw new AnnalsError('insufficient_scope', sentence)
  }
  // A session that has the id already would be found out.
  if (use_uuid) refuse('Leave out use_uuid: a token cannot choose the ids of sessions.')
  if ('session_id' in reach)
    refuse('This token is for one session and cannot create another. Use a token of a user, or an API key.')
  if ('user' in reach && user !== reach.user)
    refuse("Pass the token's user: it cannot create sessions of another user.")
  if ('parent' in reach && user) refuse('Leave out user: this token creates sub-sessions without a user.')
  if (
    'parent' in reach &&
    parent?.toLowerCase() !== reach.parent &&
    !(parent && (await reaches(request, parent)))
  )
    throw notFound('session')
  if ('user' in reach && parent && !(await reaches(request, parent))) throw notFound('session')
}

/** An idempotency key as it is stored: tokens that reach the same have keys of their own, and see nobody else's. */
export function ownKey({ grant }: FastifyRequest, key: string): string {
  const reach = grant!.narrow?.reach_text
  if (reach === undefined) return key
  return `token ${createHash('sha256').update(`${reach}\n${key}`).digest('base64url')}`
}

/** Those of some blobs that a session refers to: a token refers to no others, of which it knows no more than a hash. */
export async function ownBlobs(
  { database, project_id }: Tenant,
  session_id: string,
  hashes: readonly string[],
): Promise<Set<string>> {
  const rows = await database.query(FIND_OWN_BLOBS, [project_id, session_id, [...hashes]])
  return new Set(rows.map(({ sha256 }) => sha256!))
}

/** @throws AnnalsError session_not_found, where a token would be for a session that is not there */
export async function requireSession({ database, project_id }: Tenant, reach: Sessions): Promise<void> {
  if ('user' in reach) return
  const [place, id] = Object.entries(reach)[0]!
  const [row] = await database.query(HAS_SESSION, [project_id, id])
  if (!row) throw notFound('session', `/for/${place}`)
}

const tails = new Map<string, number>()

/** Counts a tail of the request's token; the function that it returns ends it. @throws AnnalsError quota_exceeded */
export function holdTail({ grant }: FastifyRequest): () => void {
  const id = grant!.narrow?.id
  if (id === undefined) return () => {}
  const open = tails.get(id) ?? 0
  if (open >= TAILS_MAX)
    throw new AnnalsError(
      'quota_exceeded',
      `This token may have ${TAILS_MAX} live tails open at each node. Close one first.`,
    )
  tails.set(id, open + 1)
  return () => {
    const left = tails.get(id)! - 1
    if (left > 0) tails.set(id, left)
    else tails.delete(id)
  }
}
