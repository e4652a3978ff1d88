import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import type { FairSemaphore } from '@annals/kits/fairness/fair_queue.js'
import { newId } from '@annals/kits/ids.js'
import type { Dependents } from '@annals/kits/lifecycle/table.js'
import { type Database, DatabaseAway, type Queryable, type Row } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation } from '@annals/kits/postgres/database_errors.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { type Created, createOnce } from '../log/create_once.js'
import { readLastSeq } from '../log/read/read_log.js'
import { END_COPIES } from '../log/unfinished_copy_queries.js'
import { type Room, readSize, withinRoom } from '../projects/usage.js'
import { BEGIN_COPY, COMPARE_COPY, COPY_SHORT_SESSION, COPY_SLICE, FINISH_COPY } from './copy_queries.js'
import { eraseRemains } from './erase/erase_sessions.js'
import { refuseWhileReserved } from './sessions.js'

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
 * session. The log is copied up to `up_to_seq`, or to its end at the beginning. Entries never change, except the meta of a message,
 * which is copied as its slice finds it. If `use_uuid` is an existing copy with the same values, returns that one.
 * @throws AnnalsError session_not_found, seq_ahead, session_exists, idempotency_key_reused, overloaded, unavailable
 */
export function copySession(
  database: Database,
  longWork: FairSemaphore,
  request: CopyRequest,
): Promise<Created> {
  const { project_id, session_id, use_uuid, up_to_seq, idempotency, room } = request
  const tenant = { database, project_id }
  return createOnce(tenant, idempotency, async () => {
    const existing = use_uuid && (await findAgreeing(database, request, use_uuid))
    if (existing) return existing
    if (use_uuid !== undefined) await refuseWhileReserved(tenant, use_uuid)
    const { bytes } = room.bytes ? await readSize(tenant, session_id, up_to_seq) : { bytes: 0 }
    return withinRoom(room, { sessions: 1, bytes }, async () => {
      const copied = await copy(database, longWork, request)
      const { new_session_id } = JSON.parse(copied) as { new_session_id: string }
      // The copy is there, whether or not it can be counted.
      const size = await readSize(tenant, new_session_id).catch(() => ({}))
      room.made?.({ sessions: 1, ...size })
      return copied
    })
  })
}

async function copy(database: Database, longWork: FairSemaphore, request: CopyRequest): Promise<string> {
  const { project_id, session_id, use_uuid, up_to_seq, user, body, idempotency } = request
  const { key = null, request_hash = null } = idempotency ?? {}
  const asked = [session_id, use_uuid ?? newId(), up_to_seq ?? null, user ?? null, newId(), body]
  const bounds = [key, request_hash, SLICE.entries, SLICE.bytes]
  const short = await call(database, COPY_SHORT_SESSION, project_id, ...asked, ...bounds)
  if (short) return short
  const last_seq = await readLastSeq(database, project_id, session_id)
  if (up_to_seq !== undefined && up_to_seq > last_seq) throw beyond(up_to_seq, last_seq)
  return longWork.run(project_id, () => copyInSlices(database, request))
}

async function findAgreeing(
  database: Database,
  { project_id, session_id, up_to_seq, user, body }: CopyRequest,
  use_uuid: string,
): Promise<string | undefined> {
  const values = [project_id, session_id, use_uuid, up_to_seq ?? null, user ?? null, body]
  const [row] = await database.query(COMPARE_COPY, values)
  if (!row || row.agrees === 't') return row?.json ?? undefined
  throw new AnnalsError(
    'session_exists',
    'A session with that use_uuid already exists, and is not this copy: it has another original, up_to_seq, user or configs. Choose another id.',
  )
}

function beyond(up_to_seq: number, last_seq: number): AnnalsError {
  return new AnnalsError('seq_ahead', `/up_to_seq ${up_to_seq} is beyond the session's last seq ${last_seq}.`)
}

interface CopyRequest {
  project_id: string
  session_id: string
  /** The copy ends with this entry; by default with the last one. */
  up_to_seq: number | undefined
  user: string | undefined
  use_uuid: string | undefined
  /** The body as sent; configs are taken from it. */
  body: string
  idempotency: IdempotencyKey | undefined
  room: Room
  /** Whether the caller is still connected: without a key, nobody else could ever learn of the copy. */
  isWanted: () => boolean
  /** Whether this process keeps running. */
  isServing: () => boolean
  dependents: Dependents
}

/** Most entries, and bytes of their JSON, that one statement copies: some hundred milliseconds of work. */
const SLICE = { entries: 2_000, bytes: 4 * 1024 * 1024 }
/** How long a step is retried, in ms: the lease lasts longer. */
const PATIENCE_MS = 15_000
const PAUSE_MS = 200

interface Copy extends CopyRequest {
  id: string
  /** The original session as it was at the beginning. */
  source: Row
  last_seq: number
  /** Entries up to this seq are copied; their bytes and tokens. */
  copied_seq: number
  bytes: number
  tokens: number
}

/** Copies a session of any length, in slices. @throws AnnalsError session_not_found, overloaded, unavailable */
async function copyInSlices(database: Database, request: CopyRequest): Promise<string> {
  const copy = await database.transaction((connection) => begin(connection, request)).catch(invisible)
  const { isServing, isWanted, idempotency, use_uuid } = request
  const isFindable = idempotency !== undefined || use_uuid !== undefined
  try {
    for (;;) {
      if (!isServing() || (!isFindable && !isWanted())) throw brokenOff()
      if (copy.copied_seq === copy.last_seq) break
      const slice = await patiently(() =>
        database.transaction((connection) => copySlice(connection, copy)),
      ).catch(invisible)
      copy.copied_seq += slice.entries
      copy.bytes += slice.bytes
      copy.tokens += slice.tokens
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
  const { project_id, session_id, use_uuid, up_to_seq, idempotency } = request
  const owned = [project_id, session_id]
  await connection.query(BEGIN_COPY.lock, owned)
  const [source] = await connection.query(BEGIN_COPY.source, owned)
  if (!source) throw notFound('session')
  const id = use_uuid ?? newId()
  await connection.query(BEGIN_COPY.reserve, [project_id, id])
  await connection.query(BEGIN_COPY.lease, [...owned, id])
  await connection.query(BEGIN_COPY.reserved, [project_id, id])
  if (idempotency) {
    const { key, request_hash } = idempotency
    await connection.query(BEGIN_COPY.key, [project_id, key, request_hash, id])
  }
  const last_seq = up_to_seq ?? Number(source.last_seq)
  return { ...request, id, source, last_seq, copied_seq: 0, bytes: 0, tokens: 0 }
}

/** Returns how many entries were copied, and their bytes and tokens. */
async function copySlice(
  connection: Queryable,
  copy: Copy,
): Promise<{ entries: number; bytes: number; tokens: number }> {
  const { project_id, session_id, id, copied_seq, last_seq } = copy
  const until = Math.min(copied_seq + SLICE.entries, last_seq)
  const parameters = [project_id, session_id, id, copied_seq, until, SLICE.bytes, last_seq]
  const entries = await connection.query(COPY_SLICE.entries, parameters)
  const copied_to = copied_seq + entries.length
  await connection
    .query(COPY_SLICE.references, [project_id, session_id, id, copied_seq, copied_to])
    .catch((error) => {
      // A blob has gone with the original.
      throw isForeignKeyViolation(error) ? brokenOff() : error
    })
  const [moved] = await connection.query(COPY_SLICE.move, [project_id, id, copied_seq, copied_to])
  if (!moved || entries.length === 0) throw await reasonOfEnd(connection, copy)
  const sum = (column: 'bytes' | 'tokens') =>
    entries.reduce((total, entry) => total + Number(entry[column]), 0)
  return { entries: entries.length, bytes: sum('bytes'), tokens: sum('tokens') }
}

async function finish(connection: Queryable, copy: Copy): Promise<string> {
  const { project_id, session_id, id, source, last_seq, idempotency } = copy
  const { user_id, configs, disable_task_tracking, expires_in_s } = source
  if (user_id !== null) await connection.query(FINISH_COPY.user, [project_id, user_id!])
  // The original still exists, so it existed during each slice, and no slice misses entries that were being deleted.
  const updated_at = await lastTouched(connection, copy)
  const [released] = await connection.query(FINISH_COPY.release, [project_id, id, last_seq])
  if (!released) throw brokenOff()
  const [row] = await connection.query(FINISH_COPY.session, [
    ...[project_id, session_id, id, copy.user ?? null, newId(), copy.body],
    ...[user_id!, configs!, disable_task_tracking!, expires_in_s!],
    ...[last_seq, copy.tokens, updated_at, copy.bytes],
  ])
  if (row!.answer === null) throw brokenOff()
  if (idempotency) await connection.query(FINISH_COPY.key, [project_id, idempotency.key, id, row!.answer!])
  return row!.answer!
}

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
    'The copy was aborted, and nothing of it remains. Retry to make a new one.',
  )
}

/** Deletes the entries of a copy that will not be finished, while this process keeps running. */
async function removeRemains(
  database: Database,
  { project_id, id, isServing, dependents }: Copy,
): Promise<void> {
  // None: the copy was finished after all, although nobody could tell, or another process ended it and deletes the
  // rest.
  if (!(await call(database, END_COPIES.own, project_id, [id]))) return
  await eraseRemains({ database, project_id }, id, dependents, () => {
    if (!isServing()) throw brokenOff()
  })
}
