import type { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import type { Counts } from '@annals/kits/lifecycle/table.js'
import { BEFORE_ALL, type Composed } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import type { Database, Queryable } from '@annals/kits/postgres/database.js'
import { planned, prepared } from '@annals/kits/postgres/statement.js'

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
  after?: PrunePosition | undefined
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

/**
 * Which sessions of a project may be deleted: those last touched before a time, possibly only of one user or with
 * certain configs.
 */
export interface OldSessions {
  project_id: string
  /** A timestamp as PostgreSQL writes it. */
  untouched_since: string
  user_id?: string | undefined
  /** A JSON object as text: only sessions whose configs contain it. */
  configs?: string | undefined
}

export interface PrunePosition {
  created_at: string
  id: string
}

/** The time so many seconds ago, by the database's clock. Parameters: $1 seconds. */
export const TIME_BEFORE = prepared(
  'time_before',
  `SELECT ${timestampText('(now() - make_interval(secs => $1::double precision))')} AS time`,
)

/** Parameters: $1 project, $2 the time, $3 user or null. */
const CREATED_BEFORE =
  's.project_id = $1 AND s.created_at < $2::timestamptz AND ($3::uuid IS NULL OR s.user_id = $3::uuid)'

/**
 * The next sessions of a walk against the order of creation, and whether each may be deleted. The time of the last
 * change is in the head and in no index, so every session is read. No session was touched before it was created, so the
 * walk begins with the last one created early enough. The slice is cut before configs are compared, so that the statement has one
 * plan and bounded cost, whatever the filter. Rows: id, created_at, last_seq, goes. Parameters: $4 configs or null, $5
 * created_at and $6 id to start after, $7 how many.
 */
const FIND_OLD_SESSIONS = planned(
  'find_old_sessions',
  `
SELECT t.id, ${timestampText('t.created_at')} AS created_at, h.last_seq,
  h.updated_at < $2::timestamptz AND ($4::jsonb IS NULL OR t.configs @> $4::jsonb) AS goes
FROM (
  SELECT s.id, s.created_at, s.configs FROM sessions s
  WHERE ${CREATED_BEFORE} AND (s.created_at, s.id) < ($5::timestamptz, $6::uuid) ORDER BY s.created_at DESC, s.id DESC LIMIT $7
) t
CROSS JOIN LATERAL (
  -- One by one: a planner that does not know the limit would rather read the heads of all sessions.
  SELECT i.last_seq, i.updated_at FROM session_heads i WHERE i.project_id = $1 AND i.session_id = t.id LIMIT 1
) h
ORDER BY t.created_at DESC, t.id DESC`,
)

export function findOldSessions(
  { project_id, untouched_since, user_id, configs }: OldSessions,
  { created_at, id }: PrunePosition = BEFORE_ALL.desc,
  limit: number,
): Composed {
  const parameters = [project_id, untouched_since, user_id ?? null, configs ?? null, created_at, id, limit]
  return { statement: FIND_OLD_SESSIONS, parameters }
}

const COUNT_OLD_SESSIONS = planned(
  'count_old_sessions',
  `SELECT count(*) AS sessions FROM sessions s WHERE ${CREATED_BEFORE}`,
)

/** The number of sessions that a walk will read. Row: sessions. */
export function countOldSessions({ project_id, untouched_since, user_id }: OldSessions): Composed {
  return { statement: COUNT_OLD_SESSIONS, parameters: [project_id, untouched_since, user_id ?? null] }
}
