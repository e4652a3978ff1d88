import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, notFound } from '../errors.js'
import type { FairSemaphore } from '../fairness/fair_semaphore.js'
import { newId } from '../ids.js'
import type { Dependents } from '../lifecycle/table.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { type Created, createOnce } from '../log/create_once.js'
import { readLastSeq } from '../log/read/read_log.js'
import { END_COPIES } from '../log/unfinished_copy_queries.js'
import { type Database, DatabaseAway, type Queryable, type Row } from '../postgres/database.js'
import { type Room, readBytes, withinRoom } from '../projects/usage.js'
import { BEGIN_COPY, COPY_SHORT_SESSION, COPY_SLICE, FINISH_COPY } from './copy_queries.js'
import { eraseRemains } from './erase/erase_sessions.js'

/** Most entries, and bytes of their JSON, that one statement copies: some hundred milliseconds of work. */
const SLICE = { entries: 2_000, bytes: 4 * 1024 * 1024 }
/** How long a step is retried, in ms: the lease lasts longer. */
const PATIENCE_MS = 15_000
const PAUSE_MS = 200

/** A request for a copy. */
export interface CopyRequest {
  project_id: string
  session_id: string
  idempotency: IdempotencyKey | undefined
  /** The quota that the copy must fit into. */
  room: Room
  /** Whether the caller is still connected: without a key, nobody else could ever learn of the copy. */
  isWanted: () => boolean
  /** Whether this process keeps running. */
  isServing: () => boolean
  /** What else belongs to a session. */
  dependents: Dependents
}

/** The progress of a long copy. */
interface Copy extends CopyRequest {
  /** The new session. */
  id: string
  /** The original session as it was at the beginning. */
  source: Row
  last_seq: number
  /** Entries up to this seq are copied. */
  copied_seq: number
}

/**
 * Copies a session with its log. Returns `{ old_session_id, new_session_id }` as JSON.
 *
 * A short session is copied by one statement. A longer one is copied in slices, a short transaction each:
 * - begun: the copy has a lease, which is a row of erased_sessions, and a key without an answer, if the caller sent
 *   one;
 * - in progress: each slice adds entries and renews the lease, and nobody sees any of it;
 * - finished: one transaction creates the session and its head, answers the key, and removes the lease.
 *
 * If the copy ends before, the lease is removed or expires, and what was written is deleted like the remains of a
 * session. The log is copied up to its end at the beginning. Entries never change, except the meta of a message,
 * which is copied as its slice finds it.
 * @throws AnnalsError session_not_found, idempotency_key_reused, overloaded, unavailable
 */
export function copySession(
  database: Database,
  longWork: FairSemaphore,
  request: CopyRequest,
): Promise<Created> {
  const { project_id, session_id, idempotency, room } = request
  return createOnce(database, project_id, idempotency, async () => {
    const bytes = room.bytes ? await readBytes(database, project_id, session_id) : 0
    return withinRoom(room, { sessions: 1, bytes }, () => copy(database, longWork, request))
  })
}

async function copy(database: Database, longWork: FairSemaphore, request: CopyRequest): Promise<string> {
  const { project_id, session_id, idempotency } = request
  const key = [idempotency?.key ?? null, idempotency?.request_hash ?? null]
  const parameters = [project_id, session_id, newId(), ...key, SLICE.entries, SLICE.bytes]
  const [short] = await database.query(COPY_SHORT_SESSION.statement, parameters)
  if (short?.answer) return short.answer
  await readLastSeq(database, project_id, session_id)
  return longWork.run(project_id, () => copyInSlices(database, request))
}

async function copyInSlices(database: Database, request: CopyRequest): Promise<string> {
  const copy = await database.transaction((connection) => begin(connection, request)).catch(invisible)
  const { isServing, isWanted, idempotency } = request
  try {
    for (;;) {
      if (!isServing() || (!idempotency && !isWanted())) throw brokenOff()
      if (copy.copied_seq === copy.last_seq) break
      copy.copied_seq = await patiently(() =>
        database.transaction((connection) => copySlice(connection, copy)),
      ).catch(invisible)
    }
    return await patiently(() => database.transaction((connection) => finish(connection, copy)))
  } catch (error) {
    await removeRemains(database, copy).catch(() => {
      // The lease expires, and housekeeping does the rest.
    })
    throw error
  }
}

/**
 * Retries a step that found no connection, or lost it before its commit, so that a minute's work is not lost for
 * that.
 */
async function patiently<T>(step: () => Promise<T>): Promise<T> {
  for (const since = performance.now(); ; ) {
    try {
      return await step()
    } catch (error) {
      const isUndone =
        error instanceof DatabaseAway
          ? !error.in_doubt
          : error instanceof AnnalsError && error.error === 'overloaded'
      if (!isUndone || performance.now() - since > PATIENCE_MS) throw error
      await sleep(PAUSE_MS)
    }
  }
}

/** Nobody sees a copy before its last step, so it does not matter whether an earlier commit took effect. */
function invisible(error: unknown): never {
  throw error instanceof DatabaseAway ? new DatabaseAway(false, error.cause) : error
}

async function begin(connection: Queryable, request: CopyRequest): Promise<Copy> {
  const { project_id, session_id, idempotency } = request
  const owned = [project_id, session_id]
  await connection.query(BEGIN_COPY.lock, owned)
  const [source] = await connection.query(BEGIN_COPY.source, owned)
  if (!source) throw notFound('session')
  const id = newId()
  await connection.query(BEGIN_COPY.lease, [...owned, id])
  if (idempotency) {
    const { key, request_hash } = idempotency
    await connection.query(BEGIN_COPY.key, [project_id, key, request_hash, id])
  }
  return { ...request, id, source, last_seq: Number(source.last_seq), copied_seq: 0 }
}

/** Returns the seq up to which entries are then copied. */
async function copySlice(connection: Queryable, copy: Copy): Promise<number> {
  const { project_id, session_id, id, copied_seq, last_seq } = copy
  const until = Math.min(copied_seq + SLICE.entries, last_seq)
  const parameters = [project_id, session_id, id, copied_seq, until, SLICE.bytes]
  const entries = await connection.query(COPY_SLICE.entries, parameters)
  const [moved] = await connection.query(COPY_SLICE.move, [
    project_id,
    id,
    copied_seq,
    copied_seq + entries.length,
  ])
  if (!moved || entries.length === 0) throw await reasonOfEnd(connection, copy)
  return copied_seq + entries.length
}

/** Returns the answer as JSON. */
async function finish(connection: Queryable, copy: Copy): Promise<string> {
  const { project_id, session_id, id, source, last_seq, idempotency } = copy
  const { user_id, configs, disable_task_tracking, total_tokens, last_message_id, bytes, counted } = source
  if (user_id !== null) await connection.query(FINISH_COPY.user, [project_id, user_id!])
  // The original still exists, so it existed during each slice, and no slice misses entries that were being deleted.
  const updated_at = await lastTouched(connection, copy)
  const [released] = await connection.query(FINISH_COPY.release, [project_id, id, last_seq])
  if (!released) throw brokenOff()
  const [row] = await connection.query(FINISH_COPY.session, [
    ...[project_id, session_id, id, user_id!, configs!, disable_task_tracking!],
    ...[last_seq, total_tokens!, last_message_id!, updated_at, bytes!, counted!],
  ])
  if (idempotency) await connection.query(FINISH_COPY.key, [project_id, idempotency.key, id, row!.answer!])
  return row!.answer!
}

/** @throws AnnalsError session_not_found */
async function lastTouched(connection: Queryable, copy: Copy): Promise<string> {
  const { project_id, session_id, source } = copy
  const [row] = await connection.query(FINISH_COPY.source, [project_id, session_id, source.created_at!])
  if (!row) throw notFound('session')
  return row.updated_at!
}

/** The copy no longer belongs to this process. */
async function reasonOfEnd(connection: Queryable, copy: Copy): Promise<Error> {
  return lastTouched(connection, copy).then(brokenOff, (error) => error)
}

function brokenOff(): AnnalsError {
  return new AnnalsError(
    'unavailable',
    'The copy was aborted, and nothing of it is left. Retry for a new one.',
  )
}

/** Deletes what was written of a copy that will not be finished, while this process keeps running. */
async function removeRemains(
  database: Database,
  { project_id, id, isServing, dependents }: Copy,
): Promise<void> {
  // No row: the copy was finished after all, although nobody could tell, or another process ended it and deletes the
  // rest.
  const [ended] = await database.query(END_COPIES.own.statement, [project_id, [id]])
  if (!ended?.answer) return
  await eraseRemains(database, project_id, id, dependents, () => {
    if (!isServing()) throw brokenOff()
  })
}
