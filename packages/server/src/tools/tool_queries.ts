import { HEARD_S } from '@annals/kits/changes/project_consumers.js'
import type { Composed } from '@annals/kits/lists/listed.js'
import { beside, composed } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { sqlFile, storedInsert } from '@annals/kits/postgres/stored_function.js'
import sql, { empty, raw, type Sql } from 'sql-template-tag'

/** The tables of calls: see migrations/0036_tool_calls.sql. */

export const CALLS_CONSUMER = 'calls'

/** SQL: whether the calls of project $1 are kept, and not being removed because nobody asks for them. */
export const ARE_CALLS_KEPT = `EXISTS (
  SELECT FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = '${CALLS_CONSUMER}' AND c.retired_at IS NULL)`
/** Advice for lost rows of these tables. */
export const READ_ANEW =
  'Something other than Annals wrote here. Export the project and import it into another one, which reads it anew'

/** The latest calls of a session that a later entry may belong to; a log that repeats others is read as if they were new. */
const CALLS_KNOWN = 1_000

/** A session's state in the index. Parameters: $1 project, $2 session. Row: calls (JSON), question, question_seq, stream. */
export const READ_INDEX_STATE = prepared(
  'read_state_of_calls',
  `
SELECT r.question, r.question_seq, r.stream, coalesce((
  SELECT json_agg(json_build_object('number', c.number, 'seq', c.seq, 'at', ${timestampText('c.called_at')}, 'id', c.call_id,
    'event_id', c.event_id, 'name', c.name, 'given', c.given, 'recorded', c.recorded, 'answered', c.answered,
    'is_retracted', c.is_retracted, 'failed', c.failed, 'result_seq', c.result_seq, 'duration_ms', c.duration_ms,
    'result', c.result, 'said_seq', c.said_seq, 'said', c.said) ORDER BY c.number)
  FROM (SELECT t.* FROM tool_calls t WHERE t.project_id = $1 AND t.session_id = $2 ORDER BY t.number DESC LIMIT ${CALLS_KNOWN}) c
), '[]')::text AS calls
FROM session_readings r WHERE r.project_id = $1 AND r.session_id = $2`,
)

export const INDEX_CALL_ROWS = storedInsert(
  'index_calls',
  ['uuid', 'jsonb'],
  `INSERT INTO tool_calls AS n (project_id, session_id, number, seq, called_at, name, call_id, event_id, given, recorded, answered,
  is_retracted, is_counted, failed, result_seq, duration_ms, message, result, said_seq, said)
SELECT $1, $2, r.number, r.seq, r.at, r.name, r.id, r.event_id, r.given, r.recorded, r.answered,
  r.is_retracted, NOT r.is_retracted AND r.seq > coalesce(s.forked_at_seq, 0), r.failed, r.result_seq, r.duration_ms, r.message, r.result, r.said_seq, r.said
FROM jsonb_to_recordset($3) AS r (number bigint, seq bigint, at timestamptz, name text, id text, event_id text, given bigint,
  recorded smallint, answered smallint, is_retracted boolean, failed boolean, result_seq bigint, duration_ms bigint, message text,
  result text, said_seq bigint, said text)
${beside('s', 'SELECT o.forked_at_seq FROM sessions o WHERE o.project_id = $1 AND o.id = $2')}
ON CONFLICT (project_id, session_id, number) DO UPDATE SET call_id = excluded.call_id, event_id = excluded.event_id,
  recorded = excluded.recorded, answered = excluded.answered, is_retracted = excluded.is_retracted, is_counted = excluded.is_counted,
  failed = excluded.failed, result_seq = excluded.result_seq, duration_ms = excluded.duration_ms, message = excluded.message,
  result = excluded.result, said_seq = excluded.said_seq, said = excluded.said`,
)

/** Writes a session into the index, in this order, in the transaction that moves the cursor. Parameters of each: $1 project, $2 session. */
export const INDEX_CALLS = {
  /** Of calls that are known here: $3 seqs of entries that were retracted. */
  retract: prepared('retract_calls', sqlFile('tools/retract_calls.sql')),
  /** $3 calls, as JSON. Copied calls count in the original. */
  calls: INDEX_CALL_ROWS.statement,
  /** $3 question, $4 its seq, $5 stream. */
  reading: prepared(
    'write_session_reading',
    `
INSERT INTO session_readings AS r (project_id, session_id, question, question_seq, stream) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project_id, session_id) DO UPDATE SET question = excluded.question, question_seq = excluded.question_seq, stream = excluded.stream
WHERE r.question IS DISTINCT FROM excluded.question OR r.question_seq IS DISTINCT FROM excluded.question_seq OR r.stream <> excluded.stream`,
  ),
} as const

const TABLES = ['tool_calls', 'session_readings']

/** Those of sessions that are gone. Parameters: $1 project, $2 sessions. */
export const FORGET_CALLS = TABLES.map((table) =>
  prepared(
    `forget_${table}`,
    `DELETE FROM ${table} AS t WHERE t.project_id = $1 AND t.session_id = ANY ($2::uuid[])`,
  ),
)

/** Some rows of each table, a month after anybody asked. Parameters: $1 project, $2 how many. Rows: one each. */
export const ERASE_CALLS = TABLES.map((table) =>
  prepared(
    `erase_some_${table}`,
    `DELETE FROM ${table} AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
  SELECT o.ctid FROM ${table} o WHERE o.project_id = $1 LIMIT $2)) RETURNING 1 AS gone`,
  ),
)

/**
 * How far the index is. Parameters: $1 project, $2 a time or null. Row: now; is_being_made; is_settled, if every node has
 * heard of it since and so marks what it stores; marks of what was stored until $2, or now; sessions_scanned.
 */
export const READ_CALLS_STATE = prepared(
  'read_calls_state',
  `
SELECT ${timestampText('now()')} AS now, c.scanned_at IS NULL OR c.retired_at IS NOT NULL AS is_being_made,
  c.scan_at > c.scanned_at + interval '${HEARD_S} s' AS is_settled, c.sessions_scanned, m.marks
FROM project_consumers c
CROSS JOIN LATERAL (
  SELECT count(*) AS marks FROM change_marks k
  WHERE k.project_id = $1 AND k.consumer = '${CALLS_CONSUMER}' AND k.marked_at <= coalesce($2::timestamptz, now())
) m
WHERE c.project_id = $1 AND c.consumer = '${CALLS_CONSUMER}'`,
)

/** A session that is not read to its end: asked for in the seconds before marks can be relied on. Parameters: $1 project. Row: session_id. */
export const FIND_UNREAD_SESSION = prepared(
  'find_unread_session',
  `
SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.last_seq > coalesce((
  SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.consumer = '${CALLS_CONSUMER}' AND u.session_id = h.session_id), 0)
LIMIT 1`,
)

/** Which calls are counted. Times in RFC 3339, `to` excluded. */
export interface CountedCalls {
  project_id: string
  name?: string | undefined
  user_id?: string | undefined
  configs?: string | undefined
  from?: string | undefined
  to?: string | undefined
}

/** Calls that are counted at most, the newest: this limits what a question costs, whatever it asks. */
export const CALLS_COUNTED_MAX = 500_000

function countedCalls({ project_id, name, user_id, configs, from, to }: CountedCalls, most: number): Sql {
  const of: Sql = name === undefined ? empty : sql`AND c.name = ${name}`
  const after: Sql = from === undefined ? empty : sql`AND c.called_at >= ${from}::timestamptz`
  const before: Sql = to === undefined ? empty : sql`AND c.called_at < ${to}::timestamptz`
  const user: Sql = user_id === undefined ? empty : sql`AND s.user_id = ${user_id}::uuid`
  const matches: Sql = configs === undefined ? empty : sql`AND s.configs @> ${configs}::jsonb`
  const sessions: Sql =
    user_id === undefined && configs === undefined
      ? empty
      : sql`JOIN sessions s ON s.project_id = ${project_id} AND s.id = c.session_id ${user} ${matches}`
  return sql`SELECT c.name, c.session_id, c.number, c.failed, c.duration_ms, c.called_at FROM tool_calls c ${sessions}
  WHERE c.project_id = ${project_id} AND c.is_counted ${of} ${after} ${before}
  ORDER BY c.called_at DESC LIMIT ${raw(String(most + 1))}`
}

const FIGURES = `count(*) AS calls, count(*) FILTER (WHERE c.failed) AS failures, count(*) FILTER (WHERE c.failed IS NULL) AS unanswered,
    count(DISTINCT c.session_id) AS sessions, percentile_disc(0.5) WITHIN GROUP (ORDER BY c.duration_ms) AS p50_ms,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY c.duration_ms) AS p95_ms, ${timestampText('max(c.called_at)')} AS last_called_at`

/** Where older calls were left out: the time of the oldest that is counted. */
const COUNTED_FROM = (most: number) =>
  `CASE WHEN (SELECT count(*) FROM counted) > ${most} THEN (SELECT ${timestampText('min(k.called_at)')} FROM counted k) END`

/** Tools, those that failed most first. Row: tools (JSON, one more than `limit` if there are more), counted_from. */
export function countTools(filter: CountedCalls, limit: number, most = CALLS_COUNTED_MAX): Composed {
  return composed(
    'count_tools',
    sql`
WITH counted AS MATERIALIZED (${countedCalls(filter, most)}), tools AS (
  SELECT c.name, ${raw(FIGURES)} FROM counted c
  GROUP BY c.name ORDER BY failures DESC, calls DESC, c.name LIMIT ${limit + 1}
)
SELECT coalesce((SELECT json_agg(t.* ORDER BY t.failures DESC, t.calls DESC, t.name) FROM tools t), '[]')::text AS tools,
  ${raw(COUNTED_FROM(most))} AS counted_from`,
  )
}

const EXAMPLES = 3
const TITLE = `coalesce(CASE WHEN jsonb_typeof(s.configs -> 'title') = 'string'
  THEN nullif(concat(left(s.configs ->> 'title', 160), CASE WHEN length(s.configs ->> 'title') > 160 THEN '…' END), '') END, r.question)`

/**
 * A tool, and its failures by what their messages have in common, the most frequent first, each with its newest examples.
 * Row: tool (JSON, null if it was not called), groups (JSON, one more than `limit` if there are more), counted_from.
 */
export function groupFailures(
  filter: CountedCalls & { name: string },
  limit: number,
  most = CALLS_COUNTED_MAX,
): Composed {
  const { project_id } = filter
  return composed(
    'group_failures',
    sql`
WITH counted AS MATERIALIZED (${countedCalls(filter, most)}), failed AS MATERIALIZED (
  SELECT c.session_id, c.number, c.called_at, t.message
  FROM counted c
  CROSS JOIN LATERAL (SELECT coalesce(o.message, '') AS message FROM tool_calls o
    WHERE o.project_id = ${project_id} AND o.session_id = c.session_id AND o.number = c.number) t
  WHERE c.failed
), groups AS (
  SELECT f.message, count(*) AS failures, count(DISTINCT f.session_id) AS sessions,
    ${raw(timestampText('min(f.called_at)'))} AS first_at, ${raw(timestampText('max(f.called_at)'))} AS last_at,
    (array_agg(f.session_id ORDER BY f.called_at DESC, f.session_id, f.number))[1:${raw(String(EXAMPLES))}] AS session_ids,
    (array_agg(f.number ORDER BY f.called_at DESC, f.session_id, f.number))[1:${raw(String(EXAMPLES))}] AS numbers
  FROM failed f GROUP BY f.message ORDER BY failures DESC, f.message LIMIT ${limit + 1}
)
SELECT (SELECT row_to_json(t.*) FROM (SELECT ${raw(FIGURES)} FROM counted c) t)::text AS tool, coalesce((
    SELECT json_agg(json_build_object('message', nullif(g.message, ''), 'failures', g.failures, 'sessions', g.sessions, 'first_at', g.first_at, 'last_at', g.last_at,
      'examples', (SELECT json_agg(json_build_object('session_id', t.session_id, 'title', ${raw(TITLE)}, 'seq', t.seq, 'result_seq', t.result_seq,
          'called_at', ${raw(timestampText('t.called_at'))}, 'result', coalesce(t.result, ''),
          'said', CASE WHEN t.said_seq IS NOT NULL THEN json_build_object('seq', t.said_seq, 'text', t.said) END,
          'called', (SELECT json_build_object('seq', n.seq, 'name', n.name) FROM tool_calls n
            WHERE n.project_id = ${project_id} AND n.session_id = f.session_id AND n.number > f.number
              AND n.seq > coalesce(t.result_seq, t.seq) AND NOT n.is_retracted ORDER BY n.number LIMIT 1)) ORDER BY f.place)
        FROM unnest(g.session_ids, g.numbers) WITH ORDINALITY AS f (session_id, number, place)
          JOIN tool_calls t ON t.project_id = ${project_id} AND t.session_id = f.session_id AND t.number = f.number
          JOIN sessions s ON s.project_id = ${project_id} AND s.id = f.session_id
          LEFT JOIN session_readings r ON r.project_id = ${project_id} AND r.session_id = f.session_id)) ORDER BY g.failures DESC, g.message)
    FROM groups g), '[]')::text AS groups,
  ${raw(COUNTED_FROM(most))} AS counted_from`,
  )
}
