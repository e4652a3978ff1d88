import sql from 'sql-template-tag'
import { prepared } from '../statement.js'
import { type ListPosition, type ListStatement, listPage } from './keyset.js'
import { sessionJson } from './resource_json.js'
import { withUser } from './users.js'

/**
 * A session with its head, and its user if need be, and the memory of its idempotency key.
 * No row: see withUser.
 * Parameters: $1 project, $2 session id, $3 user identifier or null, $4 id for a new user, $5 the body as JSON,
 * $6 idempotency key or null, $7 request hash.
 */
export const CREATE_SESSION = prepared(
  'create_session',
  `
WITH ${withUser({ project: '$1', identifier: '$3', new_id: '$4' })}, made AS (
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  SELECT $1, $2::uuid, o.id, coalesce(nullif($5::jsonb -> 'configs', 'null'), '{}'), coalesce(($5::jsonb ->> 'disable_task_tracking')::boolean, false), now()
  FROM owner o
  RETURNING s.*
), made_head AS (
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at)
  SELECT m.project_id, m.id, 0, 0, m.created_at FROM made m
  RETURNING h.*
), answer AS (
  SELECT m.project_id, m.id, ${sessionJson('m', 'h')} AS json FROM made m JOIN made_head h ON h.session_id = m.id
), remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
  SELECT a.project_id, $6::text, $7::text, a.id, now(), a.json FROM answer a WHERE $6::text IS NOT NULL
)
SELECT json FROM answer`,
)

/** Parameters: $1 project, $2 session. */
export const READ_SESSION = prepared(
  'read_session',
  `
SELECT ${sessionJson('s', 'h')} AS json
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2`,
)

/** Where a session's log stands. Parameters: $1 project, $2 session. */
export const READ_HEAD = prepared(
  'read_head',
  'SELECT h.last_seq FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2',
)

/**
 * A session if what was sent with use_uuid agrees with it: `agrees` is true or false.
 * Parameters: $1 project, $2 session, $3 user identifier or null (not sent), $4 the body as JSON.
 */
export const COMPARE_SESSION = prepared(
  'compare_session',
  `
SELECT ${sessionJson('s', 'h')} AS json,
  ($3::text IS NULL OR u.identifier IS NOT DISTINCT FROM $3::text)
  AND coalesce(nullif($4::jsonb -> 'configs', 'null') = s.configs, true)
  AND coalesce(($4::jsonb ->> 'disable_task_tracking')::boolean = s.disable_task_tracking, true) AS agrees
FROM sessions s
JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
LEFT JOIN users u ON u.project_id = $1 AND u.id = s.user_id
WHERE s.project_id = $1 AND s.id = $2`,
)

/**
 * Deleting a session, in one transaction and in this order. Its entries go first, which may take a while and
 * hinders nobody; then its head, which waits for an append under way, and after which an append finds no
 * session; then what was appended in between.
 * Parameters of each: $1 project, $2 session.
 */
export const DELETE_SESSION = {
  entries: prepared(
    'delete_session_entries',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2',
  ),
  head: prepared(
    'delete_session_head',
    'DELETE FROM session_heads AS h WHERE h.project_id = $1 AND h.session_id = $2 RETURNING h.session_id',
  ),
  keys: prepared(
    'delete_session_keys',
    'DELETE FROM idempotency_keys WHERE project_id = $1 AND owner_id = $2',
  ),
  session: prepared('delete_session', 'DELETE FROM sessions WHERE project_id = $1 AND id = $2'),
} as const

export interface SessionFilter {
  project_id: string
  user_id?: string | undefined
  /** A JSON object as text: only sessions whose configs contain it. */
  configs?: string | undefined
}

/** A page of sessions. */
export function listSessions(filter: SessionFilter, position: ListPosition): ListStatement {
  const conditions = [sql`t.project_id = ${filter.project_id}`]
  if (filter.user_id !== undefined) conditions.push(sql`t.user_id = ${filter.user_id}`)
  if (filter.configs !== undefined) conditions.push(sql`t.configs @> ${filter.configs}::jsonb`)
  return listPage({
    name: 'list_sessions',
    table: 'sessions',
    conditions,
    json: sessionJson('t', 'h'),
    join: sql`JOIN session_heads h ON h.project_id = ${filter.project_id} AND h.session_id = t.id`,
    position,
  })
}
