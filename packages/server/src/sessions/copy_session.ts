import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, notFound } from '../errors.js'
import type { FairSemaphore } from '../fairness/fair_semaphore.js'
import { newId } from '../ids.js'
import { eraseRemains } from '../lifecycle/erase/erase_sessions.js'
import { type Created, createOnce } from '../lists/create_once.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { readLastSeq } from '../log/read/read_log.js'
import { type Database, DatabaseAway, type Queryable, type Row } from '../postgres/database.js'
import { type Room, readBytes, withinRoom } from '../projects/usage.js'
import { BEGIN_COPY, COPY_SHORT_SESSION, COPY_SLICE, END_COPIES, FINISH_COPY } from './copy_queries.js'

/** Entries, and bytes of their JSON, that one statement copies at most: some hundred milliseconds' work. */
const SLICE = { entries: 2_000, bytes: 4 * 1024 * 1024 }
/** How long a step is taken again, in ms: the lease lasts longer. */
const PATIENCE_MS = 15_000
const PAUSE_MS = 200

/** Who asks for a copy of which session. */
export interface CopyRequest {
  project_id: string
  session_id: string
  idempotency: IdempotencyKey | undefined
  /** Where the copy must find room. */
  room: Room
  /** Whether the caller is still there: without a key, nobody else could ever learn of the copy. */
  isWanted: () => boolean
  /** Whether this process goes on. */
  isServing: () => boolean
}

/** Where a long copy stands. */
interface Copy extends CopyRequest {
  /** The new session. */
  id: string
  /** The copied session as it was at the beginning. */
  source: Row
  last_seq: number
  /** Entries up to this one are copied. */
  copied_seq: number
}

/**
 * Copies a session with its log. Gives `{ old_session_id, new_session_id }` as JSON.
 *
 * A short session is copied by one statement. A longer one is copied in slices, a short transaction each:
 *   begun: the copy has a lease, a row of erased_sessions, and a key without an answer, if the caller sent one;
 *   under way: each slice adds entries and renews the lease, nobody sees any of it;
 *   finished: one transaction makes the session and its head, answers the key, and removes the lease.
 * Whatever ends it before ends the lease as well, or lets it run out, and what was written is deleted as the remains
 * of a session. The log is copied as far as it went at the beginning; entries are never changed, but the meta of a
 * message, which is copied as its slice finds it.
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
  const [short] = await database.query(COPY_SHORT_SESSION, parameters)
  if (short) return short.json!
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
      // The lease runs out, and housekeeping does the rest.
    })
    throw error
  }
}

/** Takes a step again that found no connection, or lost it before its commit: a minute's work is not lost for that. */
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

/** Nobody sees a copy before its last step: it does not matter whether a commit before that took effect. */
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

/** Gives the seq up to which entries are copied then. */
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

/** Gives the answer as JSON. */
async function finish(connection: Queryable, copy: Copy): Promise<string> {
  const { project_id, session_id, id, source, last_seq, idempotency } = copy
  const { user_id, configs, disable_task_tracking, total_tokens, last_message_id, bytes, counted } = source
  if (user_id !== null) await connection.query(FINISH_COPY.user, [project_id, user_id!])
  // Still there, so it was there at each slice, and none of these lacks what was being deleted.
  const updated_at = await lastTouched(connection, copy)
  const [released] = await connection.query(FINISH_COPY.release, [project_id, id, last_seq])
  if (!released) throw brokenOff()
  const [row] = await connection.query(FINISH_COPY.session, [
    ...[project_id, session_id, id, user_id!, configs!, disable_task_tracking!],
    ...[last_seq, total_tokens!, last_message_id!, updated_at, bytes!, counted!],
  ])
  if (idempotency) await connection.query(FINISH_COPY.key, [project_id, idempotency.key, id, row!.json!])
  return row!.json!
}

/** @throws AnnalsError session_not_found */
async function lastTouched(connection: Queryable, copy: Copy): Promise<string> {
  const { project_id, session_id, source } = copy
  const [row] = await connection.query(FINISH_COPY.source, [project_id, session_id, source.created_at!])
  if (!row) throw notFound('session')
  return row.updated_at!
}

/** Why a copy no longer belongs to this process. */
async function reasonOfEnd(connection: Queryable, copy: Copy): Promise<Error> {
  return lastTouched(connection, copy).then(brokenOff, (error) => error)
}

function brokenOff(): AnnalsError {
  return new AnnalsError(
    'unavailable',
    'The copy was broken off, and nothing of it is left. Send the request again for a new one.',
  )
}

/** Deletes what was written of a copy that will not be finished, as long as this process goes on. */
async function removeRemains(database: Database, { project_id, id, isServing }: Copy): Promise<void> {
  // None: it was finished after all, though nobody could tell, or another has ended it and deletes what remains.
  const [ended] = await database.query(END_COPIES.own, [project_id, id])
  if (!ended) return
  await eraseRemains(database, project_id, id, () => {
    if (!isServing()) throw brokenOff()
  })
}
