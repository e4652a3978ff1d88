import { prepared } from '../statement.js'

/**
 * Removing sessions with their logs, in one transaction and in this order: `entries`, which may take a while and
 * hinders nobody; `heads`, which wait for appends under way (locked in the appender's order, or the two could
 * deadlock) and after which an append finds no session; `entries` again, for what was appended in between; then
 * the rest. Parameters of each: $1 project, $2 session ids. Each gives one row with the count of removed rows.
 */
export const ERASE_SESSIONS = {
  entries: counted(
    'erase_entries',
    'DELETE FROM entries AS e WHERE e.project_id = $1 AND e.session_id = ANY ($2::uuid[])',
  ),
  heads: prepared(
    'erase_heads',
    `
WITH locked AS MATERIALIZED (
  SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])
  ORDER BY h.session_id FOR UPDATE
), gone AS (
  DELETE FROM session_heads AS h USING locked l WHERE h.project_id = $1 AND h.session_id = l.session_id RETURNING 1
)
SELECT count(*) FROM gone`,
  ),
  keys: counted(
    'erase_keys',
    'DELETE FROM idempotency_keys AS k WHERE k.project_id = $1 AND k.owner_id = ANY ($2::uuid[])',
  ),
  sessions: counted(
    'erase_sessions',
    'DELETE FROM sessions AS s WHERE s.project_id = $1 AND s.id = ANY ($2::uuid[])',
  ),
} as const

/** Parameters of each: $1 project, $2 ids of learning spaces. */
export const ERASE_LEARNING_SPACES = {
  spaces: counted(
    'erase_learning_spaces',
    'DELETE FROM learning_spaces AS l WHERE l.project_id = $1 AND l.id = ANY ($2::uuid[])',
  ),
  keys: ERASE_SESSIONS.keys,
} as const

/** Parameters of each: $1 project, $2 user. */
export const FIND_OWNED = {
  sessions: prepared(
    'find_owned_sessions',
    'SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.user_id = $2 ORDER BY s.id',
  ),
  learning_spaces: prepared(
    'find_owned_learning_spaces',
    'SELECT l.id FROM learning_spaces l WHERE l.project_id = $1 AND l.user_id = $2',
  ),
} as const

/** Taking a project apart, piece by piece. Parameters: $1 project, and $2 how many where it is used. */
export const ERASE_PROJECT = {
  api_keys: prepared('erase_project_api_keys', 'DELETE FROM api_keys WHERE project_id = $1'),
  some_sessions: prepared('some_sessions', 'SELECT s.id FROM sessions s WHERE s.project_id = $1 LIMIT $2'),
  learning_spaces: prepared(
    'erase_project_learning_spaces',
    'DELETE FROM learning_spaces WHERE project_id = $1',
  ),
  keys: prepared('erase_project_keys', 'DELETE FROM idempotency_keys WHERE project_id = $1'),
  users: prepared('erase_project_users', 'DELETE FROM users WHERE project_id = $1'),
  project: prepared('erase_project', 'DELETE FROM projects AS p WHERE p.id = $1 RETURNING p.id'),
} as const

function counted(name: string, deletion: string) {
  return prepared(name, `WITH gone AS (${deletion} RETURNING 1) SELECT count(*) FROM gone`)
}
