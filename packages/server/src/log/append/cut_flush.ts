import {
  type AppendRequest,
  appendsOf,
  hasGivenIds,
  type PendingAppend,
  type SessionAppend,
} from './append_request.js'

/** Limits of one flush: a larger one would only delay its answers. */
export const FLUSH_ENTRIES_MAX = 500
export const FLUSH_BYTES_MAX = 1024 * 1024

/** The requests of one flush. */
export interface Flight {
  taken: PendingAppend[]
  /** The sessions that they append to. */
  sessions: ReadonlySet<string>
  /** Entries and bytes of them together. */
  entries: number
  bytes: number
}

const NONE: string[] = []

/**
 * Cuts the next flush from a project's queue, by the rules of APPEND_ENTRIES: a request with a condition, inputs or a change
 * of configs is alone on that session, those with a fence are with others of the same fence only, and each key and each caller's entry id occurs once. A request that does not fit waits for a later flush,
 * and so does everything behind it on the same session, so a session's requests keep their order; one for
 * several sessions waits until it fits on all of them. A repeat of a
 * request that is taken joins it instead of waiting. Sessions that are `inFlight` wait for their flush to end.
 */
export function cutFlush(
  waiting: PendingAppend[],
  inFlight: ReadonlySet<string>,
): Flight & { deferred: PendingAppend[] } {
  const taken: PendingAppend[] = []
  const deferred: PendingAppend[] = []
  const sessions = new Set<string>()
  const conditionalSessions = new Set<string>()
  const fences = new Map<string, number>()
  const deferredSessions = new Set<string>()
  const byKey = new Map<string, PendingAppend>()
  const givenIds = new Set<string>()
  let entries = 0
  let bytes = 0
  // Also of those that retractions change.
  let changed = 0
  const isTaken = (append: SessionAppend) =>
    inFlight.has(append.session_id) ||
    deferredSessions.has(append.session_id) ||
    conditionalSessions.has(append.session_id) ||
    (isConditional(append) && sessions.has(append.session_id)) ||
    ((append.fence !== undefined || fences.size > 0) &&
      sessions.has(append.session_id) &&
      fences.get(append.session_id) !== append.fence)
  let index = 0
  for (; index < waiting.length; index++) {
    const pending = waiting[index]!
    const { request } = pending
    const change = changedBy(request)
    const isFull = changed + change > FLUSH_ENTRIES_MAX || bytes + pending.bytes > FLUSH_BYTES_MAX
    if (isFull && taken.length > 0) break
    const leader = request.idempotency && byKey.get(request.idempotency.key)
    if (leader && leader.request.idempotency?.request_hash === request.idempotency?.request_hash) {
      leader.followers.push(pending)
      continue
    }
    const appends = appendsOf(request)
    const mustWait = leader !== undefined || appends.some(isTaken)
    const ids = !mustWait && hasGivenIds(request) ? givenIdsOf(appends) : NONE
    if (mustWait || ids.some((id) => givenIds.has(id))) {
      deferred.push(pending)
      for (const { session_id } of appends) deferredSessions.add(session_id)
      continue
    }
    taken.push(pending)
    for (const append of appends) {
      sessions.add(append.session_id)
      if (append.fence !== undefined) fences.set(append.session_id, append.fence)
      if (isConditional(append)) conditionalSessions.add(append.session_id)
    }
    if (request.idempotency) byKey.set(request.idempotency.key, pending)
    for (const id of ids) givenIds.add(id)
    entries += request.entries.length
    bytes += pending.bytes
    changed += change
  }
  for (; index < waiting.length; index++) deferred.push(waiting[index]!)
  return { taken, deferred, sessions, entries, bytes }
}

/** How many entries a request stores and changes; as many as a flush has where nobody knows. */
function changedBy({ entries, retraction }: AppendRequest): number {
  if (!retraction) return entries.length
  if ('seqs' in retraction) return entries.length + retraction.seqs.length
  return entries.length + ('last' in retraction ? retraction.last : FLUSH_ENTRIES_MAX)
}

function isConditional({ if_match, unrevised_since, configs_patch, apply }: SessionAppend): boolean {
  return (
    if_match !== undefined ||
    unrevised_since !== undefined ||
    configs_patch !== undefined ||
    apply !== undefined
  )
}

function givenIdsOf(appends: readonly SessionAppend[]): string[] {
  return appends.flatMap(({ session_id, entries }) =>
    entries.filter(({ id_given }) => id_given).map(({ id }) => `${session_id}/${id}`),
  )
}
