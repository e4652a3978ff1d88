import sql, { empty, join, raw } from 'sql-template-tag'
import { composed } from '../../lists/keyset_queries.js'
import type { Composed } from '../../lists/listed.js'
import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'

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

/** The position of a walk: after this session. */
export interface PrunePosition {
  created_at: string
  id: string
}

/** The time so many seconds ago, by the database's clock. Parameters: $1 seconds. */
export const TIME_BEFORE = prepared(
  'time_before',
  `SELECT ${timestampText('(now() - make_interval(secs => $1::double precision))')} AS time`,
)

/**
 * The next sessions of a walk against the order of creation, and whether each may be deleted. The time of the last
 * change is in the head and in no index, so every session is read. No session was touched before it was created, so the
 * walk begins with the last one created early enough. The slice is cut before configs are compared, so that the statement has one
 * plan and bounded cost, whatever the filter. Rows: id, created_at, last_seq, goes.
 */
export function findOldSessions(old: OldSessions, after: PrunePosition | undefined, limit: number): Composed {
  const conditions = created(old)
  if (after)
    conditions.push(sql`(s.created_at, s.id) < (${after.created_at}::timestamptz, ${after.id}::uuid)`)
  const matches = old.configs === undefined ? empty : sql`AND t.configs @> ${old.configs}::jsonb`
  return composed(
    'find_old_sessions',
    sql`
SELECT t.id, ${raw(timestampText('t.created_at'))} AS created_at, h.last_seq,
  h.updated_at < ${old.untouched_since}::timestamptz ${matches} AS goes
FROM (
  SELECT s.id, s.created_at, s.configs FROM sessions s
  WHERE ${join(conditions, ' AND ')} ORDER BY s.created_at DESC, s.id DESC LIMIT ${limit}
) t
CROSS JOIN LATERAL (
  -- One by one: a planner that does not know the limit would rather read the heads of all sessions.
  SELECT i.last_seq, i.updated_at FROM session_heads i
  WHERE i.project_id = ${old.project_id} AND i.session_id = t.id LIMIT 1
) h
ORDER BY t.created_at DESC, t.id DESC`,
  )
}

/** The number of sessions that a walk will read. Row: sessions. */
export function countOldSessions(old: OldSessions): Composed {
  return composed(
    'count_old_sessions',
    sql`SELECT count(*) AS sessions FROM sessions s WHERE ${join(created(old), ' AND ')}`,
  )
}

function created(old: OldSessions) {
  const conditions = [
    sql`s.project_id = ${old.project_id}`,
    sql`s.created_at < ${old.untouched_since}::timestamptz`,
  ]
  if (old.user_id !== undefined) conditions.push(sql`s.user_id = ${old.user_id}`)
  return conditions
}
