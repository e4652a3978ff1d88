import { AnnalsError, AppendInDoubt, notFound } from '@annals/kits/errors.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import type { Database, Row } from '@annals/kits/postgres/database.js'
import { ofProject, plainArray, textArray } from '@annals/kits/postgres/statement.js'
import { byId } from '../read/read_queries.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  type AppendOutcome,
  type AppendRequest,
  appendsOf,
  entryJson,
  fail,
  type PendingAppend,
  RETRACTION_TYPE,
  shapeOf,
  succeed,
} from './append_request.js'
import { NONE_KNOWN, type Unsettled } from './flush_plan.js'

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
  const project_id = batch[0]!.request.project_id
  const named = batch.flatMap((pending) =>
    appendsOf(pending.request).flatMap(({ session_id, entries }, append) =>
      entries
        .map((entry, index) => ({ pending, session_id, entry, append, index }))
        .filter(({ entry }) => entry.id_given || (isRepeated && mayBeOurs(pending, entry))),
    ),
  )
  // Most are new, and only those that are not send what they have.
  const there = named.length === 0 ? [] : await findEntryIds(database, project_id, named)
  const wanted = there.map((place) => named[place]!)
  if (wanted.length === 0)
    return batch
      .map((pending) => ({ pending, request: pending.request, known: NONE_KNOWN }))
      .filter(mayBeStored)
  const entries = wanted.map(({ entry }) => entry)
  const rows = await database.query(FIND_KNOWN_APPENDS, [
    project_id,
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
    if (row.differs === 't' && !entry.is_input && !refused.has(pending)) {
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

/** Whether an earlier attempt may have stored an entry. Others may apply an input, too: where there is a key, that tells. */
function mayBeOurs({ request }: PendingAppend, { is_input }: AppendedEntry): boolean {
  return !is_input || request.idempotency === undefined
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

export async function readBack(
  database: Database,
  pending: PendingAppend,
  seqs: string[],
  outcome: Omit<AppendOutcome, 'entries'>,
): Promise<void> {
  try {
    const { request } = pending
    const entries: AppendAnswer[] = []
    for (const [index, append] of appendsOf(request).entries()) {
      const { session_id } = append
      const own = seqs.slice(entries.length, entries.length + append.entries.length)
      const rows = await database.query(READ_APPENDED_ENTRIES, [request.project_id, session_id, own])
      if (rows.length < own.length) {
        fail(pending, notFound('session', request.appends && `/appends/${index}/session_id`))
        return
      }
      entries.push(...rows.map((row) => storedAnswer(request, session_id, row)))
    }
    succeed(pending, { ...outcome, entries })
  } catch (error) {
    // The entries are stored, and only the answer could not be read, so "nothing was stored" would be wrong.
    fail(pending, new AppendInDoubt('the stored entries could not be read back', { cause: error }))
  }
}

function storedAnswer(request: AppendRequest, session_id: string, row: Row): AppendAnswer {
  const disable_task_tracking = row.disable_task_tracking === 't'
  const { kind, id, data, format } = row as { kind: 'event' | 'message' } & Record<string, string>
  const seq = Number(row.seq)
  const json = entryJson(
    shapeOf(request, row.type!),
    { project_id: request.project_id, session_id, disable_task_tracking },
    {
      ...{
        seq,
        id: id!,
        kind,
        type: row.type!,
        format: format!,
        role: row.role!,
        key: row.key!,
        occurred_at: row.occurred_at!,
        data: data!,
      },
      ...{ meta: row.meta!, parent_id: row.parent_id!, created_at: row.time!, updated_at: row.time! },
    },
  )
  return kind === 'event' ? { seq, json } : { seq, json, id: id!, blob: data!, format: format! }
}

/** The seqs that requests with idempotency keys were answered with. Parameters: $1 project, $2 keys. */
export const FIND_APPEND_KEYS = ofProject(
  'find_append_keys',
  `
SELECT k.key, k.request_hash, coalesce(array_to_string(k.seqs, ','), k.answer) AS seqs
FROM unnest($2::text[]) AS x(key)
JOIN LATERAL (
  SELECT p.key, p.request_hash, p.seqs, p.answer FROM {idempotency_keys} p WHERE p.project_id = $1 AND p.key = x.key LIMIT 1
) k ON true`,
)

/** The places of those entries whose ids their sessions have already. */
export async function findEntryIds(
  database: Database,
  project_id: string,
  wanted: ReadonlyArray<{ session_id: string; entry: { id: string } }>,
): Promise<number[]> {
  const rows = await database.query(FIND_ENTRY_IDS, [
    project_id,
    plainArray(wanted.map(({ session_id }) => session_id)),
    plainArray(wanted.map(({ entry }) => entry.id)),
  ])
  return rows.map(({ place }) => Number(place) - 1)
}

/** Which entries are there. Parameters: $1 project; one element each: $2 session, $3 id. Rows: place, from 1. */
export const FIND_ENTRY_IDS = ofProject(
  'find_entry_ids',
  `
SELECT x.place FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS x (session_id, id, place)
CROSS JOIN LATERAL (
  SELECT o.id FROM {entries} o WHERE o.project_id = $1 AND ${byId('o', 'x.session_id', 'x.id')}
) e`,
)

/**
 * Entries that are already stored, by session and id, and whether they differ from those to be stored under the same
 * ids; the data of a retraction is not the caller's. `place` (from 1) is the index of the given entry. Parameters: $1 project; one element per entry: $2 session,
 * $3 id, $4 kind, $5 type, $6 format, $7 key, $8 data and $9 meta as JSON arrays, $10 when it happened.
 */
export const FIND_KNOWN_APPENDS = ofProject(
  'find_known_appends',
  `
SELECT x.place, e.seq, e.kind <> x.kind OR e.type IS DISTINCT FROM x.type OR e.format IS DISTINCT FROM x.format
  OR e.key IS DISTINCT FROM x.key OR e.data <> x.data AND e.type IS DISTINCT FROM '${RETRACTION_TYPE}'
  OR e.meta IS DISTINCT FROM nullif(x.meta, 'null') OR e.occurred_at IS DISTINCT FROM x.occurred_at AS differs
FROM ROWS FROM (
  unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $10::timestamptz[]),
  jsonb_array_elements($8::jsonb), jsonb_array_elements($9::jsonb)
) WITH ORDINALITY AS x(session_id, id, kind, type, format, key, occurred_at, data, meta, place)
JOIN LATERAL (
  SELECT o.seq, o.kind, o.type, o.format, o.key, o.data, o.meta, o.occurred_at
  FROM {entries} o WHERE o.project_id = $1 AND o.session_id = x.session_id AND o.id = x.id LIMIT 1
) e ON true`,
)

/**
 * Entries by their seqs, in the given order, for the answers to retries: what was stored, as it was first answered.
 * Parameters: $1 project, $2 session, $3 seqs.
 */
export const READ_APPENDED_ENTRIES = ofProject(
  'read_appended_entries',
  `
SELECT e.seq, e.id, e.kind, e.type, e.format, e.role, e.key, e.data::text AS data, e.meta::text AS meta, e.parent_id,
  ${timestampText('e.created_at')} AS time, ${timestampText('e.occurred_at')} AS occurred_at, s.disable_task_tracking
FROM unnest($3::bigint[]) WITH ORDINALITY AS w(seq, ord)
JOIN {entries} e ON e.project_id = $1 AND e.session_id = $2 AND e.seq = w.seq
JOIN {sessions} s ON s.project_id = $1 AND s.id = $2
ORDER BY w.ord`,
)

/** Rows: sha256, of the blobs that there are. Parameters: $1 project, $2 hashes. */
export const FIND_REFERRED_BLOBS = ofProject(
  'find_referred_blobs',
  'SELECT b.sha256 FROM {blobs} b WHERE b.project_id = $1 AND b.sha256 = ANY ($2::text[])',
)
