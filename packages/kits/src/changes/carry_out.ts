import { randomUUID } from 'node:crypto'
import { insist } from '../lifecycle/background.js'
import { type Database, DatabaseAway, type Queryable, type Row } from '../postgres/database.js'
import {
  FINISH_CHANGES,
  leaseMarks,
  POSTPONE_MARKS,
  READ_CHANGED_ENTRIES,
  READ_CHANGED_HEADS,
  RETURN_MARKS,
} from './change_queries.js'
import {
  type ChangedEntry,
  type ChangedSession,
  type ChangedSessions,
  type Consumer,
  Unanswered,
} from './consumer.js'

/** How long a session is one process's: many times what a piece of work may take. */
const LEASE_S = 60
/** Limits of one read, over all sessions and for one: a long log must not keep others waiting. */
const PIECE = { entries: 2_000, bytes: 2 * 1024 * 1024, entries_of_session: 500 }

export interface Job {
  database: Database
  consumer: Consumer
  project_id: string
  signal: AbortSignal
  /** Told of sessions that failed. */
  onFailure: (error: unknown) => void
  lease_s?: number
}

/** The result of a round. `left`: of these sessions, those that have more, or have failed; `is_cut`: known to have more. */
export interface Round {
  sessions: number
  left: number
  is_cut: boolean
}

/**
 * Takes up sessions that are due, and passes them to the consumer. A session is the process's that leased it, until the
 * lease ends by the database's clock: a process that was killed leaves its work to the others.
 */
export async function carryOut(job: Job): Promise<Round> {
  const { database, consumer, project_id, lease_s = LEASE_S } = job
  const lease = randomUUID()
  const leased = await leaseSome(job, lease, lease_s)
  const fresh = leased.filter(({ failures }) => failures === '0').map(({ session_id }) => session_id!)
  // Sessions that failed go alone, so that it is known which of them it was, and the others go on.
  const again = leased.filter(({ failures }) => failures !== '0').map(({ session_id }) => [session_id!])
  let left = 0
  let is_cut = false
  const groups = [fresh, ...again]
  // It grows meanwhile.
  for (const session_ids of groups) {
    if (session_ids.length === 0) continue
    try {
      job.signal.throwIfAborted()
      const work = await readChanged(job, session_ids)
      left += await carryOutSome(job, work, lease, groups)
      is_cut ||= work.is_cut
    } catch (error) {
      if (job.signal.aborted || error instanceof Unanswered) {
        await database.query(RETURN_MARKS, [project_id, consumer.name, lease])
        throw error
      }
      job.onFailure(error)
      left += session_ids.length
      // This may fail for the same reason as the work. Then nobody else takes the sessions until the lease ends.
      const failed = [project_id, consumer.name, session_ids, lease]
      await insist(() => database.query(POSTPONE_MARKS, failed), lease_s * 1_000, job.signal)
    }
  }
  return { sessions: leased.length, left, is_cut }
}

/** If the answer is lost, the marks may be leased all the same: nobody would look at them until the lease ends. */
async function leaseSome(job: Job, lease: string, lease_s: number): Promise<Row[]> {
  const { database, consumer, project_id, signal } = job
  const owned = [project_id, consumer.name, lease]
  try {
    return await database.query(leaseMarks(consumer), [...owned, lease_s])
  } catch (error) {
    if (signal.aborted || (error instanceof DatabaseAway && error.in_doubt))
      await insist(() => database.query(RETURN_MARKS, owned), lease_s * 1_000, signal)
    throw error
  }
}

/** Returns how many sessions are left; adds to the groups those that have to be done anew. */
async function carryOutSome(
  job: Job,
  work: ReadSessions,
  lease: string,
  groups: string[][],
): Promise<number> {
  const { session_ids } = work
  const write = await job.consumer.consume(work)
  const done = await job.database.transaction(async (connection) => {
    const marks = [job.project_id, job.consumer.name, session_ids, lease]
    const rows = await connection.query(FINISH_CHANGES.lock, marks)
    const held = new Set(rows.map((row) => row.session_id!))
    if (held.size < session_ids.length) return session_ids.filter((id) => held.has(id))
    return finish(connection, job, work, (await write?.(connection)) ?? [])
  })
  if (typeof done === 'number') return done
  // The lease has ended, or a session was deleted. In halves: else no other would be done while some always are deleted.
  groups.push(done.slice(0, done.length / 2), done.slice(done.length / 2))
  return 0
}

/** Moves the cursors, and clears the marks of sessions that were read to the head. Returns how many are left. */
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
  if (gone.length > 0) {
    for (const statement of consumer.forget ?? []) await connection.query(statement, [project_id, gone])
    await connection.query(FINISH_CHANGES.forget, [...owned, gone])
  }
  const done = new Set(unmoved.map(({ session_id }) => session_id!))
  for (const id of unread) done.delete(id)
  const left = sessions.filter(({ session_id }) => !done.has(session_id))
  if (done.size + gone.length > 0)
    await connection.query(FINISH_CHANGES.clear, [...owned, [...done, ...gone]])
  if (left.length > 0) {
    const read_to = left.map(({ entries, updated_at }) =>
      consumer.readsEntries ? (entries.at(-1)?.created_at ?? null) : updated_at,
    )
    const left_ids = left.map(({ session_id }) => session_id)
    await connection.query(FINISH_CHANGES.release, [...owned, left_ids, read_to])
  }
  return left.length
}

/** Work for a consumer, and its sessions; `is_cut`: some of them have entries that are not in it. */
interface ReadSessions extends ChangedSessions {
  session_ids: string[]
  is_cut: boolean
}

async function readChanged(job: Job, session_ids: string[]): Promise<ReadSessions> {
  const { database, consumer, project_id, signal } = job
  const rows = await database.query(READ_CHANGED_HEADS, [project_id, consumer.name, session_ids])
  const heads = new Map(rows.map((row) => [row.session_id, row]))
  const sessions = session_ids.flatMap((session_id): ChangedSession[] => {
    const row = heads.get(session_id)
    if (!row) return []
    const [after_seq, last_seq] = [Number(row.after_seq), Number(row.last_seq)]
    return [{ session_id, after_seq, last_seq, updated_at: row.updated_at!, entries: [] }]
  })
  const is_cut = consumer.readsEntries && (await readEntries(job, sessions))
  return {
    project_id,
    session_ids,
    sessions,
    is_cut,
    gone: session_ids.filter((id) => !heads.has(id)),
    signal,
  }
}

/** Reads a piece of the logs of sessions, from one session to the next. Returns whether anything is left. */
async function readEntries(
  { database, project_id, consumer }: Job,
  sessions: ChangedSession[],
): Promise<boolean> {
  let room = consumer.entries_max ?? PIECE.entries
  const pieces: Array<{ session: ChangedSession; to_seq: number }> = []
  for (const session of sessions) {
    const { after_seq, last_seq } = session
    const entries = Math.min(last_seq - after_seq, room, PIECE.entries_of_session)
    if (entries <= 0) continue
    room -= entries
    pieces.push({ session, to_seq: after_seq + entries })
  }
  const rows = await database.query(READ_CHANGED_ENTRIES, [
    project_id,
    pieces.map(({ session }) => session.session_id),
    pieces.map(({ session }) => session.after_seq),
    pieces.map(({ to_seq }) => to_seq),
    PIECE.bytes,
  ])
  for (const { place, seq, ...row } of rows)
    pieces[Number(place) - 1]!.session.entries.push({ ...(row as unknown as ChangedEntry), seq: Number(seq) })
  let is_cut = false
  for (const session of sessions) {
    const read_seq = session.entries.at(-1)?.seq ?? Math.min(session.after_seq, session.last_seq)
    is_cut ||= read_seq < session.last_seq
    session.last_seq = read_seq
  }
  return is_cut
}
