import type { FastifyRequest } from 'fastify'
import { type Quotas, quotaExceeded } from './quotas.js'
import type { Room, Usage, UsageDirectory } from './usage.js'
import { readModelTokens, type UsageDay } from './usage.js'

/** The quota that new sessions of the request's project must fit into. */
export function roomFor(usage: UsageDirectory, request: FastifyRequest): Room {
  const { max_sessions, max_bytes } = request.grant!.quotas
  const room = (what: 'sessions' | 'bytes', max: number | undefined): Room =>
    max === undefined
      ? {}
      : { [what]: (amount: number) => usage.reserve(request.project_id, what, amount, max) }
  const made: Room['made'] = (stored) => usage.stored(request.project_id, stored)
  return { ...room('sessions', max_sessions), ...room('bytes', max_bytes), made }
}

/** @throws AnnalsError quota_exceeded if the project already has as many tails open at this node as it may */
export function refuseTail(request: FastifyRequest, usage: UsageDirectory): void {
  const { max_tails } = request.grant!.quotas
  if (max_tails !== undefined && usage.tailsOf(request.project_id) >= max_tails)
    throw quotaExceeded('max_tails', max_tails)
}

/** @throws AnnalsError quota_exceeded if the project's quota of model tokens is used up for today */
export async function refuseWithoutTokens(request: FastifyRequest, default_max: number) {
  const { used, max } = await readModelTokens(request, default_max)
  if (used >= max) throw quotaExceeded('max_model_tokens_per_day', max)
}

export function usageJson(
  { counted_at, sessions, entries, bytes, blobs, blob_bytes, statements }: Usage,
  tails: number,
  model_tokens: { used: number; max: number },
  quotas: Quotas & { rate_limit_per_second: number | undefined },
  days: UsageDay[],
): string {
  const of = (used: number, max: number | undefined) => ({ used, max: max ?? null })
  return JSON.stringify({
    counted_at,
    sessions: of(sessions, quotas.max_sessions),
    entries: of(entries, undefined),
    bytes: of(bytes, quotas.max_bytes),
    blobs: { used: blobs },
    blob_bytes: of(blob_bytes, quotas.max_blob_bytes),
    statements: { used: statements },
    model_tokens,
    tails: of(tails, quotas.max_tails),
    requests_per_second: { max: quotas.rate_limit_per_second ?? null },
    days,
  })
}
