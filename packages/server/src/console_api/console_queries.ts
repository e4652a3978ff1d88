import sql, { empty, raw, type Sql } from 'sql-template-tag'
import type { ListStatement } from '../lists/keyset_queries.js'
import { timestampText } from '../lists/resource_json.js'
import { planned, prepared } from '../postgres/statement.js'

/** Most sessions that the chart counts: this limits its cost, whatever the filter. */
export const SESSIONS_COUNTED_MAX = 20_000

/** The last seqs of sessions. Parameters: $1 project, $2 session ids. */
export const COUNT_ENTRIES = prepared(
  'count_entries',
  `SELECT json_build_object('session_id', h.session_id, 'last_seq', h.last_seq, 'total_tokens', h.total_tokens)::text AS json
FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)

/** Identifiers of users. Parameters: $1 project, $2 user ids. */
export const NAME_USERS = prepared(
  'name_users',
  `SELECT json_build_object('id', u.id, 'identifier', u.identifier)::text AS json
FROM users u WHERE u.project_id = $1 AND u.id = ANY ($2::uuid[])`,
)

/** Widths of the chart's columns in seconds: units that people read on an axis. */
const WIDTHS = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800, 2_592_000, 31_536_000]
const COLUMNS_MAX = 72

/**
 * Counts the newest sessions of a project, or of one user, by creation time, in columns of equal width. Only these
 * are compared with `configs`, so a filter that matches nothing costs no more than one that matches all. One row:
 * json.
 */
export function countSessionsOverTime(filter: {
  project_id: string
  user_id?: string | undefined
  configs?: string | undefined
}): ListStatement {
  const user: Sql = filter.user_id === undefined ? empty : sql`AND s.user_id = ${filter.user_id}`
  const matches: Sql = filter.configs === undefined ? empty : sql`WHERE n.configs @> ${filter.configs}::jsonb`
  const query = sql`
WITH counted AS MATERIALIZED (
  SELECT n.created_at FROM (
    SELECT s.created_at, s.configs FROM sessions s WHERE s.project_id = ${filter.project_id} ${user}
    ORDER BY s.created_at DESC, s.id DESC LIMIT ${SESSIONS_COUNTED_MAX}
  ) n ${matches}
), extent AS (
  SELECT min(c.created_at) AS oldest, max(c.created_at) AS newest, count(*) AS sessions FROM counted c
), width AS (
  SELECT coalesce(min(w), ${raw(String(WIDTHS.at(-1)))}) AS seconds
  FROM extent e, unnest(${raw(`'{${WIDTHS.join(',')}}'`)}::bigint[]) AS w
  WHERE w * ${raw(String(COLUMNS_MAX))} >= extract(epoch FROM e.newest - e.oldest)
), columns AS (
  SELECT date_bin(make_interval(secs => w.seconds), c.created_at, '2001-01-01 00:00:00+00') AS start, count(*) AS sessions
  FROM counted c, width w GROUP BY 1
)
SELECT json_build_object('seconds', w.seconds, 'sessions', e.sessions, 'columns', coalesce(
  (SELECT json_agg(json_build_object('start', ${raw(timestampText('k.start'))}, 'sessions', k.sessions) ORDER BY k.start)
   FROM columns k), '[]'))::text AS json
FROM width w, extent e`
  return {
    statement: planned('count_sessions_over_time', query.text),
    parameters: query.values as ListStatement['parameters'],
  }
}
