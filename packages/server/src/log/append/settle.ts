import { AnnalsError, notFound } from '../../errors.js'
import type { Database, Row } from '../../postgres/database.js'
import { appendAnswer, storedAnswer } from './append_answer.js'
import { READ_APPENDED_ENTRIES } from './append_queries.js'
import { type AppendAnswer, type AppendedEntry, AppendInDoubt } from './append_request.js'
import type { FlushPlan, Place } from './flush_plan.js'
import { fail, type PendingAppend, succeed } from './pending_append.js'

/** What a flush found for one session: its previous head, and the time of its entries. */
export interface FoundHead {
  last_seq: number
  time: string
  last_message_id: string | null
  disable_task_tracking: boolean
}

/** What a flush found: its sessions in order (undefined for one that does not exist), and the returned entries. */
export interface FlushResult {
  heads: Array<FoundHead | undefined>
  rewritten: ReadonlyMap<AppendedEntry, Pick<AppendedEntry, 'data' | 'meta'>>
}

/** Reads the rows of the plan's statement. */
export function readResult(plan: FlushPlan, rows: readonly Row[]): FlushResult {
  const wanted = rows.filter((row) => row.place !== null)
  const rewritten = wanted.map((row) => {
    const { data, meta } = row
    return [plan.added[Number(row.place) - 1]!.entry, { data: data!, meta: meta! }] as const
  })
  return { heads: readHeads(rows.find((row) => row.place === null)!), rewritten: new Map(rewritten) }
}

function readHeads(row: Row): Array<FoundHead | undefined> {
  // Only APPEND_EVENTS lists the existing sessions, and only if one is missing.
  const { places = null } = row
  if (places === null) return headsOf(row)
  const heads: Array<FoundHead | undefined> = []
  if (places === '') return heads
  const found = headsOf(row)
  for (const [index, place] of places.split(',').entries()) heads[Number(place) - 1] = found[index]
  return heads
}

function headsOf(row: Row): Array<FoundHead | undefined> {
  const last_seqs = row.last_seqs!.split(',')
  const times = row.times!.split(',')
  const last_message_ids = row.last_message_ids!.split(',')
  return last_seqs.map((last_seq, index) =>
    last_seq === ''
      ? undefined
      : {
          last_seq: Number(last_seq),
          time: times[index] || row.now!,
          last_message_id: last_message_ids[index] || null,
          disable_task_tracking: row.untracked![index] === 't',
        },
  )
}

/**
 * Answers one request of a committed flush. Returns a promise only if stored entries must be read back, because some
 * of the caller's ids were known. Returns `look again` instead of refusing a conditional append whose own first
 * attempt may have moved the head: keys and ids were looked up before the head was locked, so an attempt that another
 * node commits meanwhile shows only in the head. `isRepeated`: an earlier attempt of the same flush may have been
 * committed.
 */
export function settle(
  database: Database,
  pending: PendingAppend,
  places: readonly Place[],
  { heads, rewritten }: FlushResult,
  attempt: { isRepeated: boolean; isSecondLook: boolean },
): Promise<void> | 'look again' | undefined {
  const { request } = pending
  const head = heads[places[0]!.session]
  if (!head) {
    fail(pending, notFound('session'))
    return
  }
  const isNew = places.some(({ behind }) => behind > 0)
  if (isNew && request.if_match !== undefined && request.if_match !== head.last_seq) {
    const mayBeOurs =
      attempt.isRepeated || request.idempotency || request.entries.some((entry) => entry.id_given)
    if (mayBeOurs && !attempt.isSecondLook) return 'look again'
    fail(pending, conflict(request.if_match, head.last_seq))
    return
  }
  if (places.some(({ known_seq }) => known_seq > 0)) {
    const seqs = places.map(({ behind, known_seq }) => String(known_seq || head.last_seq + behind))
    return readBack(database, pending, request.session_id, seqs, false)
  }
  const entries = places.map((place): AppendAnswer => {
    const seq = head.last_seq + place.behind
    const { time, disable_task_tracking } = head
    const stored = { seq, time, parent_id: parentOf(place, head), disable_task_tracking }
    const text = rewritten.get(place.entry)
    const entry = text ? { ...place.entry, ...text } : place.entry
    return { seq, json: appendAnswer(request, entry, stored) }
  })
  succeed(pending, { entries, replayed: false })
  return
}

function parentOf(place: Place, head: FoundHead): string | null {
  return place.is_first_message ? head.last_message_id : place.parent_id
}

/** Answers a request with stored entries, by their seqs. Never throws. */
export async function readBack(
  database: Database,
  pending: PendingAppend,
  session_id: string,
  seqs: string[],
  replayed: boolean,
): Promise<void> {
  try {
    const { request } = pending
    const rows = await database.query(READ_APPENDED_ENTRIES, [request.project_id, session_id, seqs])
    if (rows.length < seqs.length) {
      fail(pending, notFound('session'))
      return
    }
    succeed(pending, { entries: rows.map((row) => storedAnswer(request, row)), replayed })
  } catch (error) {
    // The entries are stored, and only the answer could not be read, so "nothing was stored" would be wrong.
    fail(pending, new AppendInDoubt('the stored entries could not be read back', { cause: error }))
  }
}

function conflict(expected: number, current: number): AnnalsError {
  return new AnnalsError(
    'seq_conflict',
    `If-Match expected seq ${expected}, but the session's last seq is ${current}. Read the new entries and try again.`,
  )
}
