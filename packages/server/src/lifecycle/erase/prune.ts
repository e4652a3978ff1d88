import type { Database, Queryable } from '../../postgres/database.js'
import { eraseRemainsOf, eraseSessions } from './erase_sessions.js'
import {
  countOldSessions,
  findOldSessions,
  type OldSessions,
  type PrunePosition,
  TIME_BEFORE,
} from './prune_queries.js'

/** Sessions that one statement looks at. */
const LOOKED_AT_ONCE_MAX = 500

/** How far pruning has come. */
export interface Pruned {
  looked_at: number
  sessions: number
  entries: number
}

/** How to prune. */
export interface PruneOptions {
  /** Deletes nothing, and counts what would be deleted. */
  dry_run?: boolean
  /** Goes on behind this session. */
  after?: PrunePosition | undefined
  /** Stops when so many have been looked at. */
  looked_at_max?: number
  signal: AbortSignal
  onProgress?: (pruned: Pruned) => void
}

/** The time that lies so many seconds back, for `untouched_since`. */
export async function timeBefore(database: Queryable, seconds: number): Promise<string> {
  const [row] = await database.query(TIME_BEFORE, [seconds])
  return row!.time!
}

/** How many sessions `prune` would look at. */
export async function countCandidates(database: Queryable, old: OldSessions): Promise<number> {
  const { statement, parameters } = countOldSessions(old)
  const [row] = await database.query(statement, parameters)
  return Number(row!.sessions)
}

/**
 * Deletes the sessions of a project that nobody has touched since a time, oldest first: a slice is looked at, and
 * what goes of it is deleted as any session is, in short transactions that look again under the lock. A session
 * that is touched meanwhile stays. Two who prune at once do no harm. When it is stopped, what is done is done, and
 * another run goes on. Gives where it stopped, undefined at the end.
 */
export async function prune(
  database: Database,
  old: OldSessions,
  options: PruneOptions,
): Promise<Pruned & { stopped_at: PrunePosition | undefined }> {
  const { dry_run = false, signal, looked_at_max = Number.POSITIVE_INFINITY } = options
  const pruned = { looked_at: 0, sessions: 0, entries: 0 }
  const add = ({ sessions, entries }: { sessions: number; entries: number }) => {
    pruned.sessions += sessions
    pruned.entries += entries
    options.onProgress?.(pruned)
    signal.throwIfAborted()
  }
  if (!dry_run) await eraseRemainsOf(database, old.project_id, signal)
  for (let after = options.after; ; ) {
    signal.throwIfAborted()
    const { statement, parameters } = findOldSessions(old, after, LOOKED_AT_ONCE_MAX)
    const slice = await database.query(statement, parameters)
    const going = slice.filter((row) => row.goes === 't')
    if (dry_run) for (const row of going) add({ sessions: 1, entries: Number(row.last_seq) })
    else
      await eraseSessions(
        database,
        old.project_id,
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
