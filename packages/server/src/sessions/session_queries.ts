import {
  beside,
  directionOf,
  type ListPosition,
  type ListStatement,
  listParameters,
  listStatement,
} from '../lists/keyset_queries.js'
import { mergedJson } from '../lists/merged_json.js'
import { sessionJson } from '../lists/resource_json.js'
import { insertTerms, moveTerms, termsStatement } from '../lists/term_queries.js'
import { prepared } from '../postgres/statement.js'
import { ofUser, withUser } from '../users/user_queries.js'

/**
 * Creates a session with its head, its user if new, and its idempotency key. No row: see withUser. Parameters: $1
 * project, $2 session id, $3 user identifier or null, $4 id for a new user, $5 the body as JSON, $6 idempotency key
 * or null, $7 request hash.
 */
export const CREATE_SESSION = prepared(
  'create_session',
  `
WITH ${withUser({ project: '$1', identifier: '$3', new_id: '$4' })}, made AS (
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  SELECT $1, $2::uuid, o.id, coalesce(nullif($5::jsonb -> 'configs', 'null'), '{}'), coalesce(($5::jsonb ->> 'disable_task_tracking')::boolean, false), now()
  FROM owner o
  RETURNING s.*
), made_terms AS (${insertTerms('sessions', '$1', 'made')}
), made_head AS (
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at)
  SELECT $1, m.id, 0, 0, m.created_at FROM made m
  RETURNING h.*
), answer AS (
  SELECT m.project_id, m.id, ${sessionJson('m', 'h')} AS json FROM made m JOIN made_head h ON h.session_id = m.id
), remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
  SELECT $1, $6::text, $7::text, a.id, now(), a.json FROM answer a WHERE $6::text IS NOT NULL
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

/** The last seq of a session. Parameters: $1 project, $2 session. */
export const READ_HEAD = prepared(
  'read_head',
  'SELECT h.last_seq FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2',
)

/**
 * A session, and whether it agrees with a request that has its id as use_uuid: `agrees` is true or false. Parameters:
 * $1 project, $2 session, $3 user identifier or null (not sent), $4 the body as JSON.
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
 * Locks a session until the transaction ends; appends to it wait. Every change of a session begins like this, in a
 * separate statement, so that the next one sees what the previous change wrote. Parameters: $1 project, $2 session.
 */
export const LOCK_SESSION = prepared(
  'lock_session',
  'SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2 FOR UPDATE',
)

/** Replaces the configs of a locked session. Parameters: $1 project, $2 session, $3 the body as JSON. */
export const REPLACE_CONFIGS = prepared(
  'replace_configs',
  `
WITH ${moveTerms('sessions', { project: '$1', id: '$2', document: "$3::jsonb -> 'configs'" })}, moved AS (
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  WHERE h.project_id = $1 AND h.session_id = $2
)
UPDATE sessions AS s SET configs = $3::jsonb -> 'configs'
WHERE s.project_id = $1 AND s.id = $2
RETURNING s.id`,
)

const MERGED_CONFIGS = mergedJson('o.configs', "($3::jsonb -> 'configs')")

/**
 * Merges into the configs of a locked session, unless the result exceeds the bytes allowed. Rows: the merged configs,
 * and whether they were stored. Parameters: $1 project, $2 session, $3 the body as JSON, $4 bytes allowed.
 */
export const MERGE_CONFIGS = prepared(
  'merge_configs',
  `
WITH merged AS MATERIALIZED (
  SELECT o.id, ${MERGED_CONFIGS} AS configs FROM sessions o WHERE o.project_id = $1 AND o.id = $2
), fitting AS MATERIALIZED (
  SELECT m.id, m.configs FROM merged m WHERE octet_length(m.configs::text) <= $4
), ${moveTerms('sessions', {
    project: '$1',
    id: '(SELECT f.id FROM fitting f)',
    document: '(SELECT f.configs FROM fitting f)',
  })}, stored AS (
  UPDATE sessions AS s SET configs = f.configs FROM fitting f
  WHERE s.project_id = $1 AND s.id = f.id
  RETURNING s.id
), moved AS (
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  FROM stored t WHERE h.project_id = $1 AND h.session_id = t.id
)
SELECT m.configs::text AS configs, EXISTS (SELECT FROM fitting) AS stored FROM merged m`,
)

/** Which sessions a list shows. */
export interface SessionFilter {
  project_id: string
  /** A user's identifier. */
  user?: string | undefined
  /** A JSON object as text, not empty: only sessions whose configs contain it. */
  configs?: string | undefined
}

const LISTED = {
  json: sessionJson('t', 'h'),
  join: beside(
    'h',
    'SELECT h.updated_at FROM session_heads h WHERE h.project_id = $1 AND h.session_id = t.id',
  ),
}

/** A page of sessions. */
export function listSessions(filter: SessionFilter, position: ListPosition): ListStatement {
  const direction = directionOf(position)
  const parameters = listParameters(filter.project_id, position)
  if (filter.configs !== undefined) {
    const statement = termsStatement({ name: 'list_sessions', list: 'sessions', direction, ...LISTED })
    return { statement, parameters: [...parameters, filter.configs, filter.user ?? null] }
  }
  if (filter.user !== undefined) {
    const parts = { name: 'list_sessions_of_user', table: 'sessions', condition: ofUser('$5') }
    return {
      statement: listStatement({ ...parts, direction, ...LISTED }),
      parameters: [...parameters, filter.user],
    }
  }
  return {
    statement: listStatement({ name: 'list_sessions', table: 'sessions', direction, ...LISTED }),
    parameters,
  }
}
