import { planned, type Statement } from '../../postgres/statement.js'
import { type Check, KEY_CHECKS, SESSION_CHECKS, SPACE_CHECKS } from './verify_check_queries.js'

/**
 * Searches for what must not be. One statement reads a bounded piece of a project, a range of sessions or of keys,
 * and returns a row for each problem. One statement is one snapshot, on a single server and on a cluster, so a
 * running service is never seen in the middle of a write. It takes no lock that a write would wait for, and the
 * snapshot lasts only for a piece, so vacuum is not held up for the whole run.
 */

/** Findings of one check that a piece returns; further ones are only counted. */
const SHOWN_MAX = 10

/** A branch for each check, and one, named `counts`, whose detail has the counts of the piece, as JSON. */
function findings(checks: Record<string, Check>, counts: string): string {
  const branches = Object.entries(checks).map(
    ([name, check]) => `
(SELECT '${name}' AS "check", (${check.session})::uuid AS session_id, ${check.place} AS place, ${check.detail} AS detail,
  count(*) OVER () AS found
FROM ${check.from} WHERE ${check.where} LIMIT ${SHOWN_MAX})`,
  )
  return [...branches, `\n(SELECT 'counts', NULL, NULL, (${counts})::text, 0)`].join('\nUNION ALL')
}

/**
 * Rows of a session that is being deleted in slices are not wrong: they are about to go. Not a join, which would
 * sort.
 */
function notErased(session_id: string): string {
  return `${session_id} <> ALL (ARRAY(SELECT x.session_id FROM erased_sessions x WHERE x.project_id = $1))`
}

/** The terms that the index must have for a row, as columns of a LATERAL `i`. */
function termsOf(list: string, row: string, document: string): string {
  return `CROSS JOIN LATERAL index_terms('${list}', ${row}.${document}, ${row}.user_id) AS i`
}

// A range of ids; null means no bound.
function within(id: string): string {
  return `($2::uuid IS NULL OR ${id} > $2) AND ($3::uuid IS NULL OR ${id} <= $3)`
}

/**
 * Sessions whose ids are in a range, their heads and logs. `id_before` of a message is the previous message's id.
 * `whole` has a row for everything that has a session's id, even if only entries. It uses FULL JOIN, which PostgreSQL
 * executes by hashing or sorting and never by comparing every pair of rows, whatever the planner expects. Rows:
 * check, session_id, place, detail, found (how many of these are in the piece). Parameters: $1 project, $2 id to
 * start after or null, $3 last id or null.
 */
export const VERIFY_SESSIONS = planned(
  'verify_sessions',
  `
WITH session AS MATERIALIZED (
  SELECT s.id, s.user_id, s.created_at, i.terms, i.signature
  FROM sessions s ${termsOf('sessions', 's', 'configs')}
  WHERE s.project_id = $1 AND ${within('s.id')}
), head AS MATERIALIZED (
  SELECT h.* FROM session_heads h WHERE h.project_id = $1 AND ${within('h.session_id')}
), log AS MATERIALIZED (
  SELECT e.session_id, e.seq, e.id, e.parent_id, e.kind, e.bytes, e.tokens, e.created_at, e.updated_at,
    CASE e.kind
      WHEN 'event' THEN e.type IS NOT NULL AND num_nulls(e.role, e.format, e.meta, e.patched_meta) = 4
      WHEN 'message' THEN e.type IS NULL AND num_nulls(e.role, e.format, e.meta) = 0
      ELSE false END AS is_formed,
    lag(e.seq) OVER log AS seq_before, lag(e.created_at) OVER log AS created_at_before,
    lag(e.id) OVER same_kind AS id_before, lead(e.id) OVER same_kind IS NULL AS is_last
  FROM entries e
  WHERE e.project_id = $1 AND ${within('e.session_id')} AND ${notErased('e.session_id')}
  WINDOW log AS (PARTITION BY e.session_id ORDER BY e.seq),
    same_kind AS (PARTITION BY e.session_id, e.kind ORDER BY e.seq)
), sums AS MATERIALIZED (
  SELECT l.session_id, count(*) AS entries, count(*) FILTER (WHERE l.kind = 'message') AS messages, max(l.seq) AS last_seq,
    sum(l.tokens) AS tokens, sum(l.bytes) AS bytes, greatest(max(l.created_at), max(l.updated_at)) AS updated_at,
    max(l.id::text) FILTER (WHERE l.is_last AND l.kind = 'message')::uuid AS last_message_id
  FROM log l GROUP BY l.session_id
), whole AS MATERIALIZED (
  SELECT coalesce(s.id, h.session_id, p.session_id) AS session_id,
    s.id, s.user_id, s.created_at, s.terms, s.signature,
    h.session_id IS NOT NULL AS has_head, h.last_seq, h.total_tokens, h.last_message_id, h.updated_at,
    h.bytes, h.counted,
    coalesce(p.entries, 0) AS entries, coalesce(p.messages, 0) AS messages, coalesce(p.last_seq, 0) AS entries_last_seq,
    coalesce(p.tokens, 0) AS entries_tokens, coalesce(p.bytes, 0) AS entries_bytes,
    p.last_message_id AS entries_last_message_id, p.updated_at AS entries_updated_at
  FROM session s FULL JOIN head h ON h.session_id = s.id
  FULL JOIN sums p ON p.session_id = coalesce(s.id, h.session_id)
)${findings(
    SESSION_CHECKS,
    `SELECT json_build_object('sessions', count(w.id), 'entries', coalesce(sum(w.entries), 0),
  'messages', coalesce(sum(w.messages), 0), 'tokens', coalesce(sum(w.entries_tokens), 0),
  'bytes', coalesce(sum(w.entries_bytes), 0),
  'rows', count(w.id) + count(*) FILTER (WHERE w.has_head) + coalesce(sum(cardinality(w.terms)) + sum(w.entries), 0))
FROM whole w`,
  )}`,
)

/**
 * The end of a piece of sessions with about as many entries, and no more sessions, than given; null: the rest is one
 * piece. A session is never divided. Parameters: $1 project, $2 id to start after or null, $3 entries, $4 sessions.
 */
export const NEXT_SESSIONS = planned(
  'verify_next_sessions',
  `
SELECT least(
  (SELECT e.session_id FROM entries e WHERE e.project_id = $1 AND ($2::uuid IS NULL OR e.session_id > $2)
   ORDER BY e.session_id, e.seq OFFSET $3 LIMIT 1),
  (SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND ($2::uuid IS NULL OR h.session_id > $2)
   ORDER BY h.session_id OFFSET $4 LIMIT 1),
  (SELECT s.id FROM sessions s WHERE s.project_id = $1 AND ($2::uuid IS NULL OR s.id > $2)
   ORDER BY s.id OFFSET $4 LIMIT 1)) AS last_id`,
)

/** As VERIFY_SESSIONS, for learning spaces. Parameters: $1 project, $2 id to start after or null, $3 how many. */
export const VERIFY_SPACES = planned(
  'verify_spaces',
  `
WITH space AS MATERIALIZED (
  SELECT t.id, t.user_id, t.created_at, t.updated_at, i.terms, i.signature
  FROM (
    SELECT l.* FROM learning_spaces l
    WHERE l.project_id = $1 AND ($2::uuid IS NULL OR l.id > $2) ORDER BY l.id LIMIT $3
  ) t ${termsOf('learning_spaces', 't', 'meta')}
)${findings(
    SPACE_CHECKS,
    `SELECT json_build_object('count', count(*), 'last', max(t.id::text),
  'rows', count(*) + coalesce(sum(cardinality(t.terms)), 0)) FROM space t`,
  )}`,
)

/** As VERIFY_SESSIONS, for idempotency keys. Parameters: $1 project, $2 key to start after, $3 how many. */
export const VERIFY_KEYS = planned(
  'verify_keys',
  `
WITH remembered AS MATERIALIZED (
  SELECT k.key, k.owner_id, k.seqs, k.answer FROM idempotency_keys k
  WHERE k.project_id = $1 AND k.key > $2 AND ${notErased('k.owner_id')} ORDER BY k.key LIMIT $3
)${findings(KEY_CHECKS, `SELECT json_build_object('count', count(*), 'rows', count(*), 'last', max(k.key)) FROM remembered k`)}`,
)

/** Parameters: $1 project. */
export const COUNT_USERS = planned(
  'verify_count_users',
  'SELECT count(*) AS users FROM users u WHERE u.project_id = $1',
)

/**
 * The number of rows to read, for the progress, one statement per table. Entries are taken from the heads, because
 * there are too many to count twice. Row: rows. Parameters: $1 project, or null for all.
 */
export const MEASURE: readonly Statement[] = [
  ['session_heads', 'coalesce(sum(t.last_seq), 0) + count(*)'] as const,
  ...['sessions', 'list_terms', 'learning_spaces', 'idempotency_keys'].map(
    (table) => [table, 'count(*)'] as const,
  ),
].map(([table, rows]) =>
  planned(
    `verify_measure_${table}`,
    `SELECT ${rows} AS rows FROM ${table} t WHERE $1::uuid IS NULL OR t.project_id = $1`,
  ),
)

/** Tokens without a project. Rows: id, project_id. */
export const TOKENS_WITHOUT_PROJECT = planned(
  'verify_tokens',
  'SELECT k.id, k.project_id FROM api_keys k LEFT JOIN projects p ON p.id = k.project_id WHERE p.id IS NULL ORDER BY k.id',
)

/**
 * The next project that a table has rows of: the only way to find rows of projects that do not exist. One statement
 * per table. Parameters: $1 project to start after.
 */
export const NEXT_PROJECT: readonly Statement[] = [
  'users',
  'sessions',
  'session_heads',
  'entries',
  'idempotency_keys',
  'learning_spaces',
  'erased_sessions',
].map((table) =>
  planned(
    `verify_next_project_${table}`,
    `SELECT t.project_id FROM ${table} t WHERE $1::uuid IS NULL OR t.project_id > $1 ORDER BY t.project_id LIMIT 1`,
  ),
)
