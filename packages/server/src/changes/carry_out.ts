import { randomUUID } from 'node:crypto'
import type { Database, Queryable } from '../postgres/database.js'
import {
  FINISH_CHANGES,
  leaseMarks,
  POSTPONE_MARKS,
  READ_CHANGED_ENTRIES,
  READ_CHANGED_HEADS,
} from './change_queries.js'
import type { ChangedEntry, ChangedSession, ChangedSessions, Consumer } from './consumer.js'

/** How long a session is one process's: many times what a piece of work may take. */
const LEASE_S = 60
/** A piece of a log. */
const PIECE = { entries: 200, bytes: 1024 * 1024 }

/** A consumer's work in one project. */
export interface Job {
  database: Database
  consumer: Consumer
  project_id: string
  signal: AbortSignal
  /** Told of sessions that failed. */
  onFailure: (error: unknown) => void
  /** How long a lease lasts, in seconds. */
  lease_s?: number
}

/** What a round did. `left`: of these sessions, those that have more, or have failed. */
export interface Round {
  sessions: number
  left: number
}

/**
 * Takes up sessions that are due, and gives them to the consumer. A session is the process's that leased it, until the
 * lease ends by the database's clock: a process that was killed leaves its work to the others.
 */
export async function carryOut(job: Job): Promise<Round> {
  const { database, consumer, project_id, lease_s = LEASE_S } = job
  const lease = randomUUID()
  const leased = await database.query(leaseMarks(consumer), [project_id, consumer.name, lease, lease_s])
  const fresh = leased.filter(({ failures }) => failures === '0').map(({ session_id }) => session_id!)
  // What has failed goes alone, so that it is known which of them it was, and the others go on.
  const again = leased.filter(({ failures }) => failures !== '0').map(({ session_id }) => [session_id!])
  let left = 0
  for (const session_ids of [fresh, ...again]) {
    if (session_ids.length === 0) continue
    job.signal.throwIfAborted()
    try {
      left += await carryOutSome(job, session_ids, lease)
    } catch (error) {
      if (job.signal.aborted) throw error
      job.onFailure(error)
      left += session_ids.length
      await database.query(POSTPONE_MARKS, [project_id, consumer.name, session_ids, lease])
    }
  }
  return { sessions: leased.length, left }
}

/** Gives how many have more. */
async function carryOutSome(job: Job, session_ids: string[], lease: string): Promise<number> {
  const work = await readChanged(job, session_ids)
  const write = await job.consumer.consume(work)
  return job.database.transaction(async (connection) => {
    const marks = [job.project_id, job.consumer.name, session_ids, lease]
    const held = await connection.query(FINISH_CHANGES.lock, marks)
    if (held.length === session_ids.length) {
      return finish(connection, job, work, (await write?.(connection)) ?? [])
    }
    // The lease has ended, or a session was deleted: what is still there is done again.
    const left = held.map((row) => row.session_id!)
    await connection.query(FINISH_CHANGES.release, [job.project_id, job.consumer.name, left])
    return left.length
  })
}

/** Moves the cursors, and clears the marks of sessions that were read to the head. Gives how many are left. */
async function finish(
  connection: Queryable,
  job: Job,
  work: ChangedSessions,
  unread: readonly string[],
): Promise<number> {
  const { consumer, project_id } = job
  const { sessions, gone } = work
  const ids = sessions.map(({ session_id }) => session_id)
  const seqs = sessions.map(({ last_seq }) => last_seq)
  const times = sessions.map(({ updated_at }) => updated_at)
  const owned = [project_id, consumer.name]
  if (consumer.readsEntries && ids.length > 0)
    await connection.query(FINISH_CHANGES.cursors, [...owned, ids, seqs])
  const unmoved = await connection.query(FINISH_CHANGES.unmoved, [project_id, ids, seqs, times])
  const done = new Set(unmoved.map(({ session_id }) => session_id!))
  for (const id of unread) done.delete(id)
  const left = ids.filter((id) => !done.has(id))
  if (done.size + gone.length > 0)
    await connection.query(FINISH_CHANGES.clear, [...owned, [...done, ...gone]])
  if (left.length > 0) await connection.query(FINISH_CHANGES.release, [...owned, left])
  return left.length
}

async function readChanged(job: Job, session_ids: string[]): Promise<ChangedSessions> {
  const { database, consumer, project_id, signal } = job
  const heads = await database.query(READ_CHANGED_HEADS, [project_id, consumer.name, session_ids])
  const sessions: ChangedSession[] = []
  for (const row of heads) {
    const session = {
      session_id: row.session_id!,
      after_seq: Number(row.after_seq),
      last_seq: Number(row.last_seq),
      updated_at: row.updated_at!,
      entries: [] as ChangedEntry[],
    }
    if (consumer.readsEntries) {
      session.entries = await readEntries(database, project_id, session)
      session.last_seq = session.entries.at(-1)?.seq ?? session.last_seq
    }
    sessions.push(session)
  }
  const found = new Set(sessions.map(({ session_id }) => session_id))
  return { project_id, sessions, gone: session_ids.filter((id) => !found.has(id)), signal }
}

async function readEntries(
  database: Database,
  project_id: string,
  { session_id, after_seq, last_seq }: ChangedSession,
): Promise<ChangedEntry[]> {
  if (after_seq >= last_seq) return []
  const piece = [
    project_id,
    session_id,
    after_seq,
    Math.min(PIECE.entries, last_seq - after_seq),
    PIECE.bytes,
  ]
  const rows = await database.query(READ_CHANGED_ENTRIES, piece)
  return rows.map((row) => ({ ...(row as unknown as ChangedEntry), seq: Number(row.seq) }))
}
