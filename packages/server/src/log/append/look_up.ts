import { AnnalsError } from '../../errors.js'
import type { Database } from '../../postgres/database.js'
import { plainArray, textArray } from '../../postgres/statement.js'
import { appendsOf, fail, type PendingAppend } from './append_request.js'
import { NONE_KNOWN, type Unsettled } from './flush_parts.js'
import { FIND_APPEND_KEYS, FIND_KNOWN_APPENDS } from './known_append_queries.js'
import { readBack } from './read_back.js'

/**
 * Settles requests that were settled before: one whose idempotency key was answered gets that answer, one whose key
 * or ids belong to something else is refused. Returns the rest. `isRepeated`: an earlier attempt may have been
 * committed, so every id is looked up.
 */
export async function lookUp(
  database: Database,
  batch: readonly PendingAppend[],
  isRepeated: boolean,
): Promise<Unsettled[]> {
  return findKnownEntries(database, await answerKnownKeys(database, batch), isRepeated)
}

async function answerKnownKeys(
  database: Database,
  batch: readonly PendingAppend[],
): Promise<readonly PendingAppend[]> {
  const keys = batch.flatMap(({ request }) => request.idempotency?.key ?? [])
  if (keys.length === 0) return batch
  const rows = await database.query(FIND_APPEND_KEYS, [batch[0]!.request.project_id, textArray(keys)])
  if (rows.length === 0) return batch
  const answered = new Map(rows.map((row) => [row.key!, row]))
  const readBacks: Promise<void>[] = []
  const unanswered = batch.filter((pending) => {
    const { idempotency } = pending.request
    const past = idempotency && answered.get(idempotency.key)
    if (!past) return true
    if (past.request_hash !== idempotency.request_hash || past.seqs === null)
      fail(pending, new AnnalsError('idempotency_key_reused'))
    else readBacks.push(readBack(database, pending, past.seqs!.split(','), { replayed: true }))
    return false
  })
  await Promise.all(readBacks)
  return unanswered
}

async function findKnownEntries(
  database: Database,
  batch: readonly PendingAppend[],
  isRepeated: boolean,
): Promise<Unsettled[]> {
  const wanted = batch.flatMap((pending) =>
    appendsOf(pending.request).flatMap(({ session_id, entries }, append) =>
      entries
        .map((entry, index) => ({ pending, session_id, entry, append, index }))
        .filter(({ entry }) => isRepeated || entry.id_given),
    ),
  )
  if (wanted.length === 0)
    return batch
      .map((pending) => ({ pending, request: pending.request, known: NONE_KNOWN }))
      .filter(mayBeStored)
  const entries = wanted.map(({ entry }) => entry)
  const rows = await database.query(FIND_KNOWN_APPENDS, [
    batch[0]!.request.project_id,
    plainArray(wanted.map(({ session_id }) => session_id)),
    plainArray(entries.map(({ id }) => id)),
    textArray(entries.map(({ kind }) => kind)),
    textArray(entries.map(({ type }) => type)),
    textArray(entries.map(({ format }) => format)),
    textArray(entries.map(({ key }) => key)),
    `[${entries.map(({ data }) => data).join(',')}]`,
    `[${entries.map(({ meta }) => meta ?? 'null').join(',')}]`,
    plainArray(entries.map(({ occurred_at }) => occurred_at)),
  ])
  const known = new Map<PendingAppend, Map<string, number>>()
  const refused = new Set<PendingAppend>()
  for (const row of rows) {
    const { pending, entry, append, index } = wanted[Number(row.place) - 1]!
    if (row.differs === 't' && !refused.has(pending)) {
      refused.add(pending)
      fail(pending, idTaken(`${pending.request.appends ? `/appends/${append}` : ''}/entries/${index}`))
    }
    const seqs = known.get(pending) ?? new Map<string, number>()
    known.set(pending, seqs.set(entry.id, Number(row.seq)))
  }
  return batch
    .filter((pending) => !refused.has(pending))
    .map((pending) => ({ pending, request: pending.request, known: known.get(pending) ?? NONE_KNOWN }))
    .filter(mayBeStored)
}

/** Whether a request has nothing new, or may store something new; otherwise it is refused. */
function mayBeStored({ pending, request, known }: Unsettled): boolean {
  const isRefused = request.only_known && known.size < request.entries.length
  if (isRefused) fail(pending, request.only_known)
  return !isRefused
}

function idTaken(place: string): AnnalsError {
  return new AnnalsError(
    'idempotency_key_reused',
    `${place}/id is already the id of another entry in this session. Use a new id for a new entry.`,
  )
}
