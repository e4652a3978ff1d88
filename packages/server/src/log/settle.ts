import type { Database, Row } from '../database/database.js'
import { READ_APPENDED_ENTRIES } from '../database/queries/append_entries.js'
import { AnnalsError, keyReused, notFound } from '../errors.js'
import { type AppendAnswer, AppendInDoubt, type AppendOutcome } from './append_request.js'
import type { PendingAppend } from './pending_append.js'

/**
 * Answers one request from its rows of APPEND_ENTRIES. Gives a promise only where stored entries have to be
 * read back: for a key or an entry id that was seen before. Gives `look again` instead of refusing a conditional
 * append whose first attempt may be what moved the head: a statement sees keys and ids as they were when it began,
 * but the head as it is when its lock comes, so an attempt that another node commits meanwhile shows in the head
 * alone. `isRepeated`: an earlier attempt of the same flush may have been carried out.
 */
export function settle(
  database: Database,
  pending: PendingAppend,
  rows: Row[],
  attempt: { isRepeated: boolean; isSecondLook: boolean },
): Promise<void> | 'look again' | undefined {
  const { request } = pending
  const first = rows[0]
  if (!first) {
    fail(pending, new Error('the flush gave no row for a request'))
    return
  }
  if (first.past_hash !== null) {
    if (first.past_hash !== request.idempotency?.request_hash) {
      fail(pending, keyReused())
      return
    }
    return readBack(database, pending, first.past_session_id!, first.past_seqs!.split(','), true)
  }
  if (first.head_seq === null) {
    fail(pending, notFound('session'))
    return
  }
  if (first.admitted !== 't') {
    const mayBeOurs =
      attempt.isRepeated || request.idempotency || request.entries.some((entry) => entry.id_given)
    if (request.if_match !== undefined && mayBeOurs && !attempt.isSecondLook) return 'look again'
    fail(
      pending,
      rows.some((row) => row.differs === 't') ? idTaken(rows) : conflict(request.if_match!, first.head_seq!),
    )
    return
  }
  if (rows.some((row) => row.known_seq !== null)) {
    const seqs = rows.map((row) => (row.known_seq ?? row.seq)!)
    return readBack(database, pending, request.session_id, seqs, false)
  }
  succeed(pending, {
    entries: rows.map((row) => ({ seq: Number(row.seq), json: row.json! })),
    replayed: false,
  })
  return
}

async function readBack(
  database: Database,
  pending: PendingAppend,
  session_id: string,
  seqs: string[],
  replayed: boolean,
): Promise<void> {
  try {
    const { project_id, kind } = pending.request
    const rows = await database.query(READ_APPENDED_ENTRIES, [project_id, session_id, seqs, kind])
    if (rows.length < seqs.length) {
      fail(pending, notFound('session'))
      return
    }
    succeed(pending, { entries: rows.map(toAnswer), replayed })
  } catch (error) {
    // What was asked for is stored and only its answer could not be read, so "nothing was stored" would be wrong.
    fail(pending, new AppendInDoubt('the stored entries could not be read back', { cause: error }))
  }
}

function toAnswer(row: Row): AppendAnswer {
  return {
    seq: Number(row.seq),
    json: row.json!,
    kind: row.kind!,
    ...(row.blob !== null && { blob: row.blob!, format: row.format! }),
  }
}

function succeed(pending: PendingAppend, outcome: AppendOutcome): void {
  pending.resolve(outcome)
  for (const follower of pending.followers) follower.resolve({ ...outcome, replayed: true })
}

function fail(pending: PendingAppend, error: unknown): void {
  pending.reject(error)
  for (const follower of pending.followers) follower.reject(error)
}

function conflict(expected: number, current: string): AnnalsError {
  return new AnnalsError(
    'seq_conflict',
    `If-Match asked for seq ${expected}, but the session's last seq is ${current}. Read what was added and try again.`,
  )
}

function idTaken(rows: Row[]): AnnalsError {
  const index = rows.findIndex((row) => row.differs === 't')
  return new AnnalsError(
    'idempotency_key_reused',
    `/entries/${index}/id stands for another entry of this session already. Give a new entry an id of its own.`,
  )
}
