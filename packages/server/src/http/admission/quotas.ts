import type { FastifyRequest } from 'fastify'
import {
  type AppendOutcome,
  type AppendRequest,
  appendsOf,
  type SessionAppend,
} from '../../log/append/append_request.js'
import { requireBlobs } from '../../log/append/blob_places.js'
import type { Feed } from '../../log/follow/feed.js'
import type { Quotas } from '../../projects/quotas.js'
import {
  quotaExceeded,
  type Reservation,
  type Room,
  type Usage,
  type UsageDirectory,
} from '../../projects/usage.js'
import type { AppParts } from '../service_context.js'

/**
 * Appends within the project's quota of bytes, and only if the project has the blobs that the entries refer to.
 * @throws AnnalsError quota_exceeded, blob_missing, and as Appender.append
 */
export async function appendWithinQuota(
  { appender, usage }: Pick<AppParts, 'appender' | 'usage'>,
  request: FastifyRequest,
  asked: Omit<AppendRequest, 'unmarked_until'>,
): Promise<AppendOutcome> {
  const { quotas, unmarked_until } = request.grant!
  const append = { ...asked, unmarked_until }
  const isReferring = ({ entries }: SessionAppend) => entries.some(({ references }) => references)
  if (appendsOf(append).some(isReferring)) await requireBlobs(request.database, append)
  const max = quotas.max_bytes
  return max === undefined ? appender.append(append) : usage.append(appender, append, max)
}

/** Reserves room for the bytes of a blob. @throws AnnalsError quota_exceeded */
export function reserveBlobBytes(
  usage: UsageDirectory,
  request: FastifyRequest,
  bytes: number,
): Promise<Reservation | undefined> {
  const max = request.grant!.quotas.max_blob_bytes
  if (max === undefined) return Promise.resolve(undefined)
  return usage.reserve(request.project_id, 'blob_bytes', bytes, max)
}

/** The quota that new sessions of the request's project must fit into. */
export function roomFor(usage: UsageDirectory, request: FastifyRequest): Room {
  const { max_sessions, max_bytes } = request.grant!.quotas
  const room = (what: 'sessions' | 'bytes', max: number | undefined): Room =>
    max === undefined
      ? {}
      : { [what]: (amount: number) => usage.reserve(request.project_id, what, amount, max) }
  return { ...room('sessions', max_sessions), ...room('bytes', max_bytes) }
}

/** @throws AnnalsError quota_exceeded if the project already has as many tails open at this node as it may */
export function refuseTail(request: FastifyRequest, feed: Feed): void {
  const { max_tails } = request.grant!.quotas
  if (max_tails !== undefined && feed.tailsOf(request.project_id) >= max_tails)
    throw quotaExceeded('max_tails', max_tails)
}

/** Usage beside quotas, as JSON. */
export function usageJson(
  { counted_at, sessions, entries, bytes, blobs, blob_bytes }: Usage,
  tails: number,
  quotas: Quotas & { rate_limit_per_second: number | undefined },
): string {
  const of = (used: number, max: number | undefined) => ({ used, max: max ?? null })
  return JSON.stringify({
    counted_at,
    sessions: of(sessions, quotas.max_sessions),
    entries: of(entries, undefined),
    bytes: of(bytes, quotas.max_bytes),
    blobs: { used: blobs },
    blob_bytes: of(blob_bytes, quotas.max_blob_bytes),
    tails: of(tails, quotas.max_tails),
    requests_per_second: { max: quotas.rate_limit_per_second ?? null },
  })
}
