import { AnnalsError, type ErrorName, notFound } from '@annals/kits/errors.js'
import type { Heartbeat } from '@annals/kits/http/answer/heartbeat.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { call, type StoredFunction } from '@annals/kits/postgres/stored_function.js'
import type { FastifyRequest } from 'fastify'
import { fencedError } from '../log/append/held_back.js'
import { fenceOf } from '../log/append_within_quota.js'
import { type Feed, runOf } from '../log/follow/feed.js'
import { type UsageDirectory, withinRoom } from '../projects/usage.js'
import { roomFor } from '../projects/within_quotas.js'
import { PENDING_MAX } from './inbox_queries.js'
import { OPEN_MAX } from './request_queries.js'

export interface RunParts {
  feed: Feed
  heartbeat: Heartbeat
  usage: UsageDirectory
  /** Hears which webhooks are to be told of input. */
  onInput: (project_id: string, webhook_ids: string[]) => void
}

/**
 * Tells all nodes what has changed: the runs of sessions; with `isWork`, that there may be work to claim; with `isLog`, the
 * logs as well.
 */
export function told(
  { feed }: Pick<RunParts, 'feed'>,
  project_id: string,
  session_ids: readonly string[],
  { isWork = false, isLog = false } = {},
): void {
  const names = session_ids.flatMap((id) => (isLog ? [runOf(id), id] : [runOf(id)]))
  feed.appended(project_id, new Set(isWork ? [...names, runOf(project_id)] : names))
}

/** A stored function's refusal. */
export interface Refusal {
  refused?: string
  fence?: number
  owner?: string
  expires_at?: string
  left_ms?: number
  sha256?: string
}

const REFUSALS: Record<string, [name: ErrorName, sentence: string]> = {
  released: ['fenced', 'The lease was released. Take it again.'],
  stalled: ['fenced', 'The lease has ended: nothing was appended under its fence for ttl_ms. Take it again.'],
  applied: ['not_pending', 'The input is not pending: it was applied. Retract its entry instead.'],
  input_differs: [
    'idempotency_key_reused',
    '/id is already the id of another input or entry of this session. Use a new id for new input.',
  ],
  request_differs: [
    'idempotency_key_reused',
    '/id is already the id of another request of this project. Use a new id for a new request.',
  ],
  inbox_full: [
    'quota_exceeded',
    `The session has ${PENDING_MAX} pending inputs, which is the limit. Nothing was stored: have a runner apply them, or withdraw some.`,
  ],
  requests_full: [
    'quota_exceeded',
    `The session has ${OPEN_MAX} open requests, which is the limit. Nothing was stored: resolve some.`,
  ],
}

/** The two lines of an answer that says something of the JSON after it. */
export function linesOf<Head>(answer: string): [head: Head, json: string] {
  const end = answer.indexOf('\n')
  return [JSON.parse(answer.slice(0, end)) as Head, answer.slice(end + 1)]
}

export function refusalIn(answer: string): Refusal | undefined {
  return /^\{"refused" ?:/.test(answer) ? (JSON.parse(answer) as Refusal) : undefined
}

/** @throws AnnalsError for what is refused; `sent`: the fence of the caller. */
export function accepted(answer: string, sent?: number): string {
  const refusal = refusalIn(answer)
  if (!refusal) return answer
  const { refused, fence, owner, expires_at } = refusal
  if (refused === 'fenced') throw fencedError(fence!, sent)
  if (refused === 'missing') throw notFound('input')
  if (refused === 'leased')
    throw new AnnalsError(
      'leased',
      `The session is leased to ${JSON.stringify(owner)} until ${expires_at}. Wait with wait_ms, or try again then.`,
    )
  throw new AnnalsError(...REFUSALS[refused!]!)
}

interface OfSession extends Pick<FastifyRequest, 'database' | 'project_id'> {
  params: { session_id: string }
}

/** Calls a stored function that changes the session of the path. @throws AnnalsError session_not_found */
export async function callFor(
  { database, project_id, params }: OfSession,
  change: StoredFunction,
  ...parameters: Parameter[]
): Promise<string> {
  const answer = await call(database, change, project_id, params.session_id, ...parameters)
  if (answer === null) throw notFound('session')
  return answer
}

/** The same under the fence in the header of a request. @throws AnnalsError for what is refused */
export async function changeUnderFence(
  request: OfSession & { headers: { 'annals-fence'?: string } },
  change: StoredFunction,
  ...parameters: Parameter[]
): Promise<string> {
  const fence = fenceOf(request)
  return accepted(await callFor(request, change, fence ?? null, ...parameters), fence)
}

/** Stores so many bytes within the project's quota, and counts them if they are new entries. */
export async function withinQuota(
  { usage }: RunParts,
  request: FastifyRequest,
  bytes: number,
  store: () => Promise<string>,
  newEntries: (answer: string) => number = () => 0,
): Promise<string> {
  const room = roomFor(usage, request)
  const stored = (await withinRoom(room, { bytes }, store))!
  const entries = newEntries(stored)
  if (entries > 0) room.made?.({ entries, bytes })
  return stored
}

/** How a request and the session of a list begin. */
const OF_SESSION = /^\{(?:"id":"[0-9a-f-]{36}",)?"session_id":"([0-9a-f-]{36})"/

export function showSessions(
  { shows }: Pick<FastifyRequest, 'shows'>,
  items: readonly string[],
  how?: 'listed',
): void {
  shows?.(
    items.flatMap((item) => OF_SESSION.exec(item)?.[1] ?? []),
    how,
  )
}
