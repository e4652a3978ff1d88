import { markChanges } from '@annals/kits/changes/mark_changes.js'
import { sessionJson } from '@annals/kits/lists/resource_json.js'
import { askingEveryProject, prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

/** SQL: the end of so many seconds from a time; null if there is no end. */
export function expiryText(time: string, seconds: string): string {
  return `${time} + make_interval(secs => ${seconds})`
}

/** SQL: `expires_in_s` of a body. A number such as 60.0 is an integer as well. */
export function expiresInText(body: string): string {
  return `(${body} ->> 'expires_in_s')::numeric::integer`
}

export const SET_EXPIRY = storedFunctionIn('sessions/set_expiry.sql', {
  expires_in: expiresInText('p_body'),
  expiry: expiryText('now()', 'expires_in'),
  mark_changes: markChanges('p_project', '(SELECT p_session AS session_id)'),
  session_json: sessionJson('made', 'made_head'),
})

/**
 * Sessions that may have expired, the longest due first. One of the few statements that ask every project: for
 * housekeeping alone. Rows: project_id, id. Parameters: $1 how many.
 */
export const FIND_DUE = askingEveryProject(
  prepared,
  'find_due_sessions',
  `SELECT s.project_id, s.id FROM {sessions} s WHERE s.expiry_due_at <= now() ORDER BY s.expiry_due_at LIMIT $1::bigint`,
)

/**
 * For those of them that have not expired, when that may be. IS TRUE keeps PostgreSQL 15 from looking for them by their
 * due time instead of their ids. In UTC, since Citus takes no function of a column that a time zone changes. Parameters:
 * $1 project, $2 ids.
 */
export const MOVE_DUE = prepared(
  'move_due_sessions',
  `
UPDATE sessions AS s
SET expiry_due_at = (${expiryText("(SELECT h.updated_at AT TIME ZONE 'UTC' FROM session_heads h WHERE h.project_id = $1 AND h.session_id = s.id)", 's.expires_in_s')}) AT TIME ZONE 'UTC'
WHERE s.project_id = $1 AND s.id = ANY ($2::uuid[]) AND (s.expiry_due_at <= now()) IS TRUE`,
)
