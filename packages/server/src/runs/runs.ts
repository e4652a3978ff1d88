import { AnnalsError, type ErrorName, invalidRequest, notFound } from '@annals/kits/errors.js'
import type { Heartbeat } from '@annals/kits/http/answer/heartbeat.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { call, type StoredFunction } from '@annals/kits/postgres/stored_function.js'
import type { FastifyRequest } from 'fastify'
import { fencedError } from '../log/append/held_back.js'
import { fenceOf } from '../log/append_within_quota.js'
import { type Feed, runOf } from '../log/follow/feed.js'
import { type UsageDirectory, withinRoom } from '../projects/usage.js'
import { roomFor } from '../projects/within_quotas.js'
import { OPEN_MAX, PENDING_MAX } from './run_queries.js'

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

/** A stored function's refusal: why, and what is there; `index`: of the resolution that is refused. */
type Refusal = { refused: string } & Partial<
  Record<'owner' | 'expires_at' | 'sha256' | 'decision' | 'at' | 'kind', string> &
    Record<'by' | 'call_sha256', string | null> &
    Record<'fence' | 'left_ms' | 'index', number>
>

/** `sent`: the fence of the caller. `place`: where the body has the refused resolution; undefined: it is the body. */
type Refused = (refusal: Refusal, sent: number | undefined, place: string | undefined) => AnnalsError

const error = (name: ErrorName, sentence: string) => () => new AnnalsError(name, sentence)

const full = (many: string, todo: string) =>
  error('quota_exceeded', `The session has ${many}, which is the limit. Nothing was stored: ${todo}.`)

/** What has the id of something else. */
const taken =
  (other: string, one: string) =>
  (_refusal: Refusal, _sent?: number, place = '') =>
    new AnnalsError(
      'idempotency_key_reused',
      `${place}/id is already the id of another ${other}. Use a new id for ${one}.`,
    )

/** Of a request that cannot be answered any more. */
const over = (place: string | undefined, end: string) =>
  new AnnalsError('resolved', `${place ? `${place}: the` : 'The'} request ${end}. Nothing was changed.`)

const REFUSALS: Record<string, Refused> = {
  fenced: ({ fence }, sent) => fencedError(fence!, sent),
  leased: ({ owner, expires_at }) =>
    new AnnalsError(
      'leased',
      `The session is leased to ${JSON.stringify(owner)} until ${expires_at}. Wait with wait_ms, or try again then.`,
    ),
  released: error('fenced', 'The lease was released. Take it again.'),
  stalled: error('fenced', 'The lease ended: nothing was appended under it for ttl_ms. Take it again.'),
  applied: error('not_pending', 'The input is not pending: it was applied. Retract its entry instead.'),
  input_missing: () => notFound('input'),
  input_differs: taken('input or entry of this session', 'new input'),
  request_differs: taken('request of this project', 'a new request'),
  differs: taken('answer or entry of this session', 'a new answer'),
  inbox_full: full(`${PENDING_MAX} pending inputs`, 'have a runner apply them, or withdraw some'),
  requests_full: full(`${OPEN_MAX} open requests`, 'resolve some'),
  missing: (_refusal, _sent, place) => notFound('request', place),
  resolved: ({ decision, by, at }, _sent, place) =>
    over(
      place,
      `was already resolved: ${decision}${by == null ? '' : `, by ${JSON.stringify(by)}`}, at ${at}`,
    ),
  expired: ({ at }, _sent, place) => over(place, `expired at ${at} without an answer`),
  kind: ({ kind }, _sent, place = '') =>
    invalidRequest(
      `${place}/decision must be ${kind === 'question' ? '"answer": the request is a question' : '"approve" or "deny": the request is an approval'}.`,
    ),
  call: ({ call_sha256 }, _sent, place = '') =>
    invalidRequest(
      call_sha256 == null
        ? `${place}/call_sha256 is given, but the request has no call. Leave it out.`
        : `${place}/call_sha256 must be ${call_sha256}, the digest of the requested call. Read the request again before you approve it.`,
    ),
}

/** The two lines of an answer: what is said of the JSON, and that. */
export function linesOf<Head>(answer: string): [head: Head, json: string] {
  const end = answer.indexOf('\n')
  return [JSON.parse(answer.slice(0, end)) as Head, answer.slice(end + 1)]
}

export function refusalIn(answer: string): Refusal | undefined {
  return /^\{"refused" ?:/.test(answer) ? (JSON.parse(answer) as Refusal) : undefined
}

/** @throws AnnalsError for what is refused. `place`: where the body has its list, if the refusal is of one of several. */
export function accepted(answer: string, sent?: number, list?: string): string {
  const refusal = refusalIn(answer)
  if (!refusal) return answer
  throw REFUSALS[refusal.refused]!(refusal, sent, list && `${list}/${refusal.index}`)
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

/** Stores so many bytes within the project's quota, and counts the new entries among them. Returns the lines of the answer. */
export async function withinQuota<Head extends { added?: number }>(
  { usage }: RunParts,
  request: FastifyRequest,
  bytes: number,
  store: () => Promise<string>,
): Promise<[head: Head, json: string]> {
  const room = roomFor(usage, request)
  const [head, json] = linesOf<Head>((await withinRoom(room, { bytes }, store))!)
  if (head.added) room.made?.({ entries: head.added, bytes })
  return [head, json]
}
