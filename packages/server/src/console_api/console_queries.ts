import sql, { empty, raw, type Sql } from 'sql-template-tag'
import type { Composed } from '../lists/listed.js'
import { timestampText } from '../lists/resource_json.js'
import { planned, prepared } from '../postgres/statement.js'

/** Most sessions that the chart counts: this limits its cost, whatever the filter. */
export const SESSIONS_COUNTED_MAX = 20_000

/** Identifiers of users. Parameters: $1 project, $2 user ids. */
export const NAME_USERS = prepared(
  'name_users',
  `SELECT json_build_object('id', u.id, 'identifier', u.identifier)::text AS json
FROM users u WHERE u.project_id = $1 AND u.id = ANY ($2::uuid[])`,
)

/** Newest sessions of a user that are counted. */
const SESSIONS_OF_USER_MAX = 500

/**
 * Users' sessions, by a value of configs, and when the newest of them last grew. Parameters: $1 project, $2 user ids,
 * $3 the path of the member of configs, or null. Rows: json.
 */
export const COUNT_SESSIONS_OF_USERS = prepared(
  'count_sessions_of_users',
  `SELECT json_build_object('id', u.id, 'sessions', coalesce(sum(c.sessions), 0),
  'last_activity', ${timestampText('max(c.last_activity)')},
  'by', coalesce(json_object_agg(c.value, c.sessions) FILTER (WHERE c.value IS NOT NULL), '{}'))::text AS json
FROM users u LEFT JOIN LATERAL (
  SELECT left((n.configs #> $3::text[])::text, 100) AS value, count(*) AS sessions, max(h.updated_at) AS last_activity
  FROM (
    SELECT s.id, s.configs FROM sessions s WHERE s.project_id = $1 AND s.user_id = u.id
    ORDER BY s.created_at DESC, s.id DESC LIMIT ${SESSIONS_OF_USER_MAX}
  ) n JOIN session_heads h ON h.project_id = $1 AND h.session_id = n.id GROUP BY 1
) c ON true
WHERE u.project_id = $1 AND u.id = ANY ($2::uuid[]) GROUP BY u.id`,
)

/** Widths of the chart's columns in seconds: units that people read on an axis. */
const WIDTHS = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800, 2_592_000, 31_536_000]
const COLUMNS_MAX = 72

/** Distinct values that are counted apart; the others are counted together. */
const VALUES_MAX = 20

/** Which sessions the chart counts. Times in RFC 3339; `by` is the path of a member of configs. */
export interface CountedSessions {
  project_id: string
  user_id?: string | undefined
  configs?: string | undefined
  from?: string | undefined
  to?: string | undefined
  by?: string[] | undefined
}

/**
 * Counts the newest sessions of a project, or of one user, by creation time, in columns of equal width, and by a value
 * of configs. Only these are compared with `configs`, so a filter that matches nothing costs no more than one that
 * matches all. One row: json.
 */
export function countSessionsOverTime(filter: CountedSessions): Composed {
  const { user_id, configs, from, to, by = [] } = filter
  const user: Sql = user_id === undefined ? empty : sql`AND s.user_id = ${user_id}`
  const after: Sql = from === undefined ? empty : sql`AND s.created_at >= ${from}::timestamptz`
  const before: Sql = to === undefined ? empty : sql`AND s.created_at < ${to}::timestamptz`
  const matches: Sql = configs === undefined ? empty : sql`WHERE n.configs @> ${configs}::jsonb`
  const value: Sql = by.length === 0 ? sql`NULL::text` : sql`left((n.configs #> ${by}::text[])::text, 100)`
  const query = sql`
WITH counted AS MATERIALIZED (
  SELECT n.created_at, ${value} AS value FROM (
    SELECT s.created_at, s.configs FROM sessions s WHERE s.project_id = ${filter.project_id} ${user} ${after} ${before}
    ORDER BY s.created_at DESC, s.id DESC LIMIT ${SESSIONS_COUNTED_MAX}
  ) n ${matches}
), extent AS (
  SELECT min(c.created_at) AS oldest, max(c.created_at) AS newest, count(*) AS sessions FROM counted c
), width AS (
  SELECT coalesce(min(w), ${raw(String(WIDTHS.at(-1)))}) AS seconds
  FROM extent e, unnest(${raw(`'{${WIDTHS.join(',')}}'`)}::bigint[]) AS w
  WHERE w * ${raw(String(COLUMNS_MAX))} >= extract(epoch FROM e.newest - e.oldest)
), common AS (
  SELECT c.value FROM counted c WHERE c.value IS NOT NULL
  GROUP BY c.value ORDER BY count(*) DESC, c.value LIMIT ${raw(String(VALUES_MAX))}
), parts AS (
  SELECT date_bin(make_interval(secs => w.seconds), c.created_at, '2001-01-01 00:00:00+00') AS start,
    coalesce(m.value, '') AS value, count(*) AS sessions
  FROM counted c CROSS JOIN width w LEFT JOIN common m ON m.value = c.value GROUP BY 1, 2
), columns AS (
  SELECT p.start, sum(p.sessions) AS sessions, json_object_agg(p.value, p.sessions) AS by FROM parts p GROUP BY 1
)
SELECT json_build_object('seconds', w.seconds, 'sessions', e.sessions, 'columns', coalesce(
  (SELECT json_agg(json_build_object('start', ${raw(timestampText('k.start'))}, 'sessions', k.sessions, 'by', k.by)
     ORDER BY k.start)
   FROM columns k), '[]'))::text AS json
FROM width w, extent e`
  return {
    statement: planned('count_sessions_over_time', query.text),
    parameters: query.values as Composed['parameters'],
  }
}
