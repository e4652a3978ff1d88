import type { Erasure } from '../../lifecycle/erase/erasure.js'
import type { Counts } from '../../lifecycle/table.js'
import type { Database, Queryable } from '../../postgres/database.js'
import {
  countOldSessions,
  findOldSessions,
  type OldSessions,
  type PrunePosition,
  TIME_BEFORE,
} from './prune_queries.js'

/** Most sessions that one statement reads. */
const LOOKED_AT_ONCE_MAX = 500

export interface Pruned {
  looked_at: number
  sessions: number
  entries: number
}

export interface PruneOptions {
  /** Deletes nothing, only counts what would be deleted. */
  dry_run?: boolean
  /** Continues after this session. */
  after?: PrunePosition | undefined
  /** Stops after reading so many. */
  looked_at_max?: number
  signal: AbortSignal
  onProgress?: (pruned: Pruned) => void
}

export async function timeBefore(database: Queryable, seconds: number): Promise<string> {
  const [row] = await database.query(TIME_BEFORE, [seconds])
  return row!.time!
}

export async function countCandidates(database: Queryable, old: OldSessions): Promise<number> {
  const { statement, parameters } = countOldSessions(old)
  const [row] = await database.query(statement, parameters)
  return Number(row!.sessions)
}

/**
 * Deletes the sessions of a project that have not been touched since a time, newest first: a session before the one
 * below which it stands, which is kept as long as it has any. It reads a slice, and
 * deletes as for any deletion, in short transactions that check again under the lock: a session that is touched
 * meanwhile is kept. Concurrent runs are harmless. If it is stopped, what is done stays done, and another run
 * continues. Returns the position where it stopped; undefined at the end.
 */
export async function prune(
  database: Database,
  erasure: Erasure,
  old: OldSessions,
  options: PruneOptions,
): Promise<Pruned & { stopped_at: PrunePosition | undefined }> {
  const tenant = { database, project_id: old.project_id }
  const { dry_run = false, signal, looked_at_max = Number.POSITIVE_INFINITY } = options
  const pruned = { looked_at: 0, sessions: 0, entries: 0 }
  const add = ({ sessions = 0, entries = 0 }: Counts) => {
    pruned.sessions += sessions
    pruned.entries += entries
    options.onProgress?.(pruned)
    signal.throwIfAborted()
  }
  if (!dry_run) await erasure.eraseAllRemains(tenant, signal)
  for (let after = options.after; ; ) {
    signal.throwIfAborted()
    const { statement, parameters } = findOldSessions(old, after, LOOKED_AT_ONCE_MAX)
    const slice = await database.query(statement, parameters)
    const going = slice.filter((row) => row.goes === 't')
    if (dry_run) for (const row of going) add({ sessions: 1, entries: Number(row.last_seq) })
    else
      await erasure.erase(
        tenant,
        'session',
        going.map((row) => row.id!),
        { untouched_since: old.untouched_since, onStep: add, onSlice: () => signal.throwIfAborted() },
      )
    pruned.looked_at += slice.length
    options.onProgress?.(pruned)
    if (slice.length < LOOKED_AT_ONCE_MAX) return { ...pruned, stopped_at: undefined }
    const last = slice.at(-1)!
    after = { created_at: last.created_at!, id: last.id! }
    if (pruned.looked_at >= looked_at_max) return { ...pruned, stopped_at: after }
  }
}
