import { AnnalsError, notFound } from '../../errors.js'
import type { Database } from '../../postgres/database.js'
import { appendAnswer, storedAnswer } from './append_answer.js'
import { type AppendAnswer, type AppendedEntry, AppendInDoubt } from './append_request.js'
import type { Place } from './flush_parts.js'
import type { FlushPlan } from './flush_plan.js'
import { READ_APPENDED_ENTRIES } from './known_append_queries.js'
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

/** Reads the answer of APPEND_ENTRIES to a plan. */
export function readResult(plan: FlushPlan, answer: string): FlushResult {
  const [last_seqs = '', times = '', now = '', last_messages = '', untracked = '', ...more] =
    answer.split('\n')
  const timeOf = times.split(',')
  const lastMessageOf = last_messages.split(',')
  const untrackedPlaces = new Set(untracked === '' ? [] : untracked.split(',').map(Number))
  const heads = last_seqs.split(',').map((last_seq, index) =>
    last_seq === ''
      ? undefined
      : {
          last_seq: Number(last_seq),
          time: timeOf[index] || now,
          last_message_id: lastMessageOf[index] || null,
          disable_task_tracking: untrackedPlaces.has(index + 1),
        },
  )
  const rewritten = plan.wanted.map((entry, index) => {
    const [data, meta] = more.slice(2 * index, 2 * index + 2)
    return [entry, { data: data!, meta: meta || null }] as const
  })
  const retracted = plan.retractions.map((entry, index) => {
    const data = more[2 * plan.wanted.length + index]!
    return [entry, { data, meta: null }] as const
  })
  return { heads, rewritten: new Map([...rewritten, ...retracted]) }
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
