import { AnnalsError, notFound } from '@annals/kits/errors.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { call, type StoredFunction } from '@annals/kits/postgres/stored_function.js'
import type { FastifyRequest } from 'fastify'
import { fencedError } from '../log/append/held_back.js'
import { type Feed, runOf } from '../log/follow/feed.js'
import type { Heartbeat } from '../log/follow/heartbeat.js'
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

const REFUSALS: Record<string, (refusal: Refusal, sent: number | undefined) => AnnalsError> = {
  fenced: ({ fence }, sent) => fencedError(fence!, sent),
  released: () => new AnnalsError('fenced', 'The lease was released. Take it again.'),
  stalled: () =>
    new AnnalsError(
      'fenced',
      'The lease has ended: nothing was appended under its fence for ttl_ms. Take it again.',
    ),
  leased: ({ owner, expires_at }) =>
    new AnnalsError(
      'leased',
      `The session is leased to ${JSON.stringify(owner)} until ${expires_at}. Wait with wait_ms, or try again then.`,
    ),
  missing: () => notFound('input'),
  applied: () =>
    new AnnalsError('not_pending', 'The input is not pending: it was applied. Retract its entry instead.'),
  input_differs: () =>
    new AnnalsError(
      'idempotency_key_reused',
      '/id is already the id of another input or entry of this session. Use a new id for new input.',
    ),
  request_differs: () =>
    new AnnalsError(
      'idempotency_key_reused',
      '/id is already the id of another request of this project. Use a new id for a new request.',
    ),
  inbox_full: () =>
    new AnnalsError(
      'quota_exceeded',
      `The session has ${PENDING_MAX} pending inputs, which is the limit. Nothing was stored: have a runner apply them, or withdraw some.`,
    ),
  requests_full: () =>
    new AnnalsError(
      'quota_exceeded',
      `The session has ${OPEN_MAX} open requests, which is the limit. Nothing was stored: resolve some.`,
    ),
}

export function refusalIn(answer: string): Refusal | undefined {
  return /^\{"refused" ?:/.test(answer) ? (JSON.parse(answer) as Refusal) : undefined
}

/** @throws AnnalsError for what is refused; `sent`: the fence of the caller. */
export function accepted(answer: string, sent?: number): string {
  const refusal = refusalIn(answer)
  if (refusal) throw REFUSALS[refusal.refused!]!(refusal, sent)
  return answer
}

interface Written extends Pick<FastifyRequest, 'database' | 'project_id'> {
  params: { session_id: string }
}

export async function callFor(
  { database, project_id, params }: Written,
  change: StoredFunction,
  ...parameters: Parameter[]
): Promise<string> {
  const answer = await call(database, change, project_id, params.session_id, ...parameters)
  if (answer === null) throw notFound('session')
  return answer
}

/** Stores so many bytes within the project's quota, and counts them if they are a new entry. */
export async function withinQuota(
  { usage }: RunParts,
  request: FastifyRequest,
  bytes: number,
  store: () => Promise<string>,
  isEntry: (answer: string) => boolean = () => false,
): Promise<string> {
  const { bytes: reserve, made } = roomFor(usage, request)
  const stored = await withinRoom({ ...(reserve && { bytes: reserve }) }, { bytes }, store)
  if (isEntry(stored!)) made?.({ entries: 1, bytes })
  return stored!
}

/** How what is shown of a session begins: a request, the session of a list, a claim. */
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
