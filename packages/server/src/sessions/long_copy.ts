import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, notFound } from '../errors.js'
import { newId } from '../ids.js'
import type { Dependents } from '../lifecycle/table.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { END_COPIES } from '../log/unfinished_copy_queries.js'
import { type Database, DatabaseAway, type Queryable, type Row } from '../postgres/database.js'
import { isForeignKeyViolation } from '../postgres/database_errors.js'
import { call } from '../postgres/stored_function.js'
import type { Room } from '../projects/usage.js'
import { eraseRemains } from './erase/erase_sessions.js'
import { BEGIN_COPY, COPY_SLICE, FINISH_COPY } from './long_copy_queries.js'

export interface CopyRequest {
  project_id: string
  session_id: string
  /** The copy ends with this entry; by default with the last one. */
  up_to_seq: number | undefined
  user: string | undefined
  use_uuid: string | undefined
  /** The body as sent; configs are taken from it. */
  body: string
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

/** Most entries, and bytes of their JSON, that one statement copies: some hundred milliseconds of work. */
export const SLICE = { entries: 2_000, bytes: 4 * 1024 * 1024 }
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
export async function copyInSlices(database: Database, request: CopyRequest): Promise<string> {
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

/** Returns the answer as JSON. */
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
    'The copy was aborted, and nothing of it is left. Retry for a new one.',
  )
}

/** Deletes what was written of a copy that will not be finished, while this process keeps running. */
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
