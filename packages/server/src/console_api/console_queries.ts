import { CONSOLE_IDLE_HOURS_MAX, CONSOLE_SESSION_DAYS_MAX } from '@annals/kits/limits.js'
import type { Composed } from '@annals/kits/lists/listed.js'
import { composed } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import sql, { empty, raw, type Sql } from 'sql-template-tag'
import { CALLS_CONSUMER } from '../tools/tool_queries.js'

const SESSIONS_COUNTED_MAX = 20_000

export const NAME_USERS = prepared(
  'name_users',
  `SELECT json_build_object('id', u.id, 'identifier', u.identifier)::text AS json
FROM users u WHERE u.project_id = $1 AND u.id = ANY ($2::uuid[])`,
)

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
 * Counts the newest sessions of a project, or of one user, by when they began, in columns of equal width, and by a value
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
  return composed(
    'count_sessions_over_time',
    sql`
WITH counted AS MATERIALIZED (
  SELECT coalesce((
    SELECT min(coalesce(e.occurred_at, e.created_at)) FROM entries e
    WHERE e.project_id = ${filter.project_id} AND e.session_id = n.id AND e.seq <= 3
  ), n.created_at) AS began_at, ${value} AS value FROM (
    SELECT s.id, s.created_at, s.configs FROM sessions s WHERE s.project_id = ${filter.project_id} ${user} ${after} ${before}
    ORDER BY s.created_at DESC, s.id DESC LIMIT ${SESSIONS_COUNTED_MAX}
  ) n ${matches}
), extent AS (
  SELECT min(c.began_at) AS oldest, max(c.began_at) AS newest, count(*) AS sessions FROM counted c
), width AS (
  SELECT coalesce(min(w), ${raw(String(WIDTHS.at(-1)))}) AS seconds
  FROM extent e, unnest(${raw(`'{${WIDTHS.join(',')}}'`)}::bigint[]) AS w
  WHERE w * ${raw(String(COLUMNS_MAX))} >= extract(epoch FROM e.newest - e.oldest)
), common AS (
  SELECT c.value FROM counted c WHERE c.value IS NOT NULL
  GROUP BY c.value ORDER BY count(*) DESC, c.value LIMIT ${raw(String(VALUES_MAX))}
), parts AS (
  SELECT date_bin(make_interval(secs => w.seconds), c.began_at, '2001-01-01 00:00:00+00') AS start,
    coalesce(m.value, '') AS value, count(*) AS sessions
  FROM counted c CROSS JOIN width w LEFT JOIN common m ON m.value = c.value GROUP BY 1, 2
), columns AS (
  SELECT p.start, sum(p.sessions) AS sessions, json_object_agg(p.value, p.sessions) AS by FROM parts p GROUP BY 1
)
SELECT json_build_object('seconds', w.seconds, 'sessions', e.sessions, 'columns', coalesce(
  (SELECT json_agg(json_build_object('start', ${raw(timestampText('k.start'))}, 'sessions', k.sessions, 'by', k.by)
     ORDER BY k.start)
   FROM columns k), '[]'))::text AS json
FROM width w, extent e`,
  )
}

/**
 * A sign-in code is a key without rights that can be exchanged, once, for a session of the console. A session is a key
 * too, so that every process on the database knows it, and it ends like one.
 */

export const FORGET_EXPIRED_SIGN_INS = prepared(
  'forget_expired_sign_ins',
  `DELETE FROM api_keys AS k WHERE k.origin IN ('sign_in_code', 'console') AND k.expires_at < now()`,
)

/**
 * Uses a code up, so that a second caller does not find it. No row: it is unknown, used or expired. Parameters: $1 its
 * SHA-256, $2 whether it is a person's, which signs in a command line and opens no console.
 */
export const TAKE_SIGN_IN_CODE = prepared(
  'take_sign_in_code',
  `DELETE FROM api_keys AS k WHERE k.token_hash = $1 AND k.origin = 'sign_in_code'
  AND (k.member_id IS NOT NULL) = $2::boolean AND k.revoked_at IS NULL AND k.expires_at > now()
RETURNING k.project_id, k.member_id`,
)

/** Puts off the end of a session that is used. In UTC, since Citus takes no function of a column that a time zone changes. Parameters: $1 project, $2 its SHA-256. */
export const RENEW_SESSION = prepared(
  'renew_console_session',
  `UPDATE api_keys AS k
SET expires_at = least(now() + interval '${CONSOLE_IDLE_HOURS_MAX} hours', (k.created_at AT TIME ZONE 'UTC' + interval '${CONSOLE_SESSION_DAYS_MAX} days') AT TIME ZONE 'UTC')
WHERE k.project_id = $1 AND k.token_hash = $2 AND k.origin = 'console' AND k.revoked_at IS NULL AND k.expires_at > now()
RETURNING k.id`,
)

export const END_SESSION = prepared(
  'end_console_session',
  `UPDATE api_keys AS k SET revoked_at = least(k.revoked_at, now())
WHERE k.project_id = $1 AND k.token_hash = $2 AND k.origin = 'console' RETURNING k.id`,
)

/**
 * Figures of sessions. Parameters: $1 project, $2 session ids. Rows: session_id, last_seq, total_tokens, title,
 * question, duration_ms, calls, failures; is_whole, if the index of calls has the whole log; summary, if the model is to
 * write one, or could not.
 */
export const READ_FIGURES = prepared(
  'read_session_figures',
  `SELECT h.session_id, h.last_seq, h.total_tokens,
  CASE WHEN jsonb_typeof(s.configs -> 'title') = 'string' THEN nullif(left(s.configs ->> 'title', 640), '') END AS title,
  (SELECT r.question FROM session_readings r WHERE r.project_id = $1 AND r.session_id = h.session_id) AS question,
  ${timestampText('f.began_at')} AS began_at,
  greatest(coalesce(floor(extract(epoch FROM
    (SELECT coalesce(l.occurred_at, l.created_at) FROM entries l WHERE l.project_id = $1 AND l.session_id = h.session_id AND l.seq = h.last_seq)
    - f.began_at) * 1000), 0), 0)::bigint AS duration_ms, c.calls, c.failures,
  h.last_seq <= coalesce((SELECT u.seq FROM change_cursors u
    WHERE u.project_id = $1 AND u.consumer = '${CALLS_CONSUMER}' AND u.session_id = h.session_id), 0) AS is_whole,
  (SELECT CASE WHEN a.due_at IS NOT NULL THEN 'waits' WHEN a.attempts > 0 THEN 'failed' END FROM auto_compactions a
    WHERE a.project_id = $1 AND a.session_id = h.session_id) AS summary
FROM session_heads h JOIN sessions s ON s.project_id = h.project_id AND s.id = h.session_id
CROSS JOIN LATERAL (SELECT (SELECT min(coalesce(e.occurred_at, e.created_at)) FROM entries e
  WHERE e.project_id = $1 AND e.session_id = h.session_id AND e.seq <= 3) AS began_at OFFSET 0) f
CROSS JOIN LATERAL (SELECT count(*) AS calls, count(*) FILTER (WHERE t.failed) AS failures
  FROM tool_calls t WHERE t.project_id = $1 AND t.session_id = h.session_id AND NOT t.is_retracted) c
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)

/**
 * The numbers of calls that are recorded in a part of a log. Parameters: $1 project, $2 session, $3 after and $4 up to
 * which seq. Rows: json, a pair of seq and the number of its first call.
 */
export const READ_CALL_NUMBERS = prepared(
  'read_call_numbers',
  `SELECT json_build_array(t.seq, min(t.number))::text AS json FROM tool_calls t
WHERE t.project_id = $1 AND t.session_id = $2 AND t.seq > $3 AND t.seq <= $4 GROUP BY t.seq ORDER BY t.seq`,
)

/** How far the index of calls has read a session. Parameters: $1 project, $2 session. Row: seq. */
export const READ_CALLS_SEQ = prepared(
  'read_calls_seq',
  `SELECT u.seq FROM change_cursors u
WHERE u.project_id = $1 AND u.consumer = '${CALLS_CONSUMER}' AND u.session_id = $2`,
)

/** Parameters of each: $1 project, $2 session ids, and $3 a seq in each. */
export const RESULT_TOOLS = {
  /** The tools whose results are stored at these entries. Rows: json. */
  names: prepared(
    'name_tools_of_results',
    `SELECT json_build_object('session_id', t.session_id, 'seq', t.result_seq, 'tool', t.name)::text AS json
FROM unnest($2::uuid[], $3::bigint[]) AS g (session_id, seq)
JOIN tool_calls t ON t.session_id = g.session_id AND t.result_seq = g.seq
WHERE t.project_id = $1 AND t.session_id = ANY ($2::uuid[])`,
  ),
  /** Whether the index of calls has read all of them. Row: is_whole. */
  isWhole: prepared(
    'have_results_been_read',
    `SELECT coalesce(bool_and(u.seq >= g.seq), false) AS is_whole FROM unnest($2::uuid[], $3::bigint[]) AS g (session_id, seq)
LEFT JOIN LATERAL (
  SELECT coalesce(max(c.seq), 0) AS seq FROM change_cursors c
  WHERE c.project_id = $1 AND c.consumer = '${CALLS_CONSUMER}' AND c.session_id = g.session_id) u ON true`,
  ),
} as const

/** How many ancestors of a session are looked up: its parent or the session that it was copied from, and so on. */
const ABOVE_MAX = 20
const BELOW_MAX = 500
/** Larger configs are left out. */
const CONFIGS_BYTES_MAX = 8_192

/** A session and those above it, nearest first. Parameters: $1 project, $2 id. Rows: id. */
export const FIND_CHAIN = prepared(
  'find_chain_of_session',
  `WITH RECURSIVE chain AS (
  SELECT s.id, coalesce(s.parent_id, s.forked_from) AS above, 0 AS level FROM sessions s WHERE s.project_id = $1 AND s.id = $2
  UNION ALL
  SELECT a.id, a.above, c.level + 1 FROM chain c CROSS JOIN LATERAL (
    SELECT o.id, coalesce(o.parent_id, o.forked_from) AS above FROM sessions o WHERE o.project_id = $1 AND o.id = c.above OFFSET 0
  ) a WHERE c.level < ${ABOVE_MAX}
)
SELECT c.id FROM chain c ORDER BY c.level`,
)

/** Sub-sessions and forks of sessions, those of the first ones first. Parameters: $1 project, $2 ids, $3 how many. Rows: id. */
export const FIND_BELOW = prepared(
  'find_sessions_below',
  `SELECT b.id FROM unnest($2::uuid[]) WITH ORDINALITY AS g (id, place) CROSS JOIN LATERAL (
  (SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = g.id ORDER BY s.created_at, s.id LIMIT ${BELOW_MAX})
  UNION ALL
  (SELECT f.id FROM sessions f WHERE f.project_id = $1 AND f.forked_from = g.id ORDER BY f.id LIMIT ${BELOW_MAX})
) b LIMIT $3`,
)

/** Sessions of a tree. Parameters: $1 project, $2 ids. Rows: json. */
export const READ_TREE = prepared(
  'read_session_tree',
  `SELECT json_build_object('id', s.id, 'parent_id', s.parent_id, 'forked_from', s.forked_from, 'forked_at_seq', s.forked_at_seq,
  'created_at', ${timestampText('s.created_at')}, 'updated_at', ${timestampText('h.updated_at')}, 'last_seq', h.last_seq,
  'configs', CASE WHEN octet_length(s.configs::text) <= ${CONFIGS_BYTES_MAX} THEN s.configs ELSE '{}' END)::text AS json
FROM sessions s JOIN session_heads h ON h.project_id = s.project_id AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = ANY ($2::uuid[]) ORDER BY s.created_at, s.id`,
)
