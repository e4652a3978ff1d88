import { dropTerms } from '@annals/kits/lists/listed.js'
import { askingEveryProject, prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn, storedInsert } from '@annals/kits/postgres/stored_function.js'
import { SESSION_LIST } from '../../log/append/append_queries.js'
import { expiryText } from '../expiry_queries.js'
import { DROP_ACTIVITY } from '../last_activity_queries.js'

export const KEEP_REMAINS = storedInsert(
  'keep_remains',
  ['uuid[]', 'bigint[]'],
  `INSERT INTO erased_sessions AS x (project_id, session_id, last_seq, erased_at)
SELECT $1::uuid, r.session_id, r.last_seq, now() FROM unnest($2::uuid[], $3::bigint[]) AS r (session_id, last_seq)
ON CONFLICT (project_id, session_id) DO UPDATE SET last_seq = greatest(x.last_seq, excluded.last_seq)`,
)

/**
 * Deletes sessions with their logs, in one transaction and in this order. `lock` waits for appends in flight, in the
 * appender's order, to avoid deadlocks; after it, nothing in these sessions changes. `heads` are what an append
 * needs: without them it finds no session. `remains` records sessions with too many entries for this transaction.
 * Parameters of each: $1 project, $2 session ids, and what it names itself.
 */
export const ERASE_SESSIONS = {
  /**
   * Those that exist; with $3 (otherwise null) only those last touched before it, with $4 only those that have expired.
   * Rows: id, last_seq.
   */
  lock: prepared(
    'lock_sessions_to_erase',
    `
SELECT h.session_id AS id, h.last_seq FROM session_heads h
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[]) AND ($3::timestamptz IS NULL OR h.updated_at < $3::timestamptz)
  AND (NOT $4::boolean OR EXISTS (
    SELECT FROM sessions s WHERE s.project_id = $1 AND s.id = h.session_id AND ${expiryText('h.updated_at', 's.expires_in_s')} <= now() OFFSET 0))
ORDER BY h.session_id FOR UPDATE`,
  ),
  heads: prepared(
    'erase_heads',
    'DELETE FROM session_heads AS h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])',
  ),
  entries: prepared(
    'erase_entries',
    'DELETE FROM entries AS e WHERE e.project_id = $1 AND e.session_id = ANY ($2::uuid[])',
  ),
  /** $3 their last seqs. */
  remains: KEEP_REMAINS.statement,
  /** First of all that a consumer of changes writes: whoever is about to write more waits for the lock, and finds no mark. */
  marks: prepared(
    'erase_marks',
    `
WITH cursors AS (
  DELETE FROM change_cursors AS u WHERE u.project_id = $1 AND u.session_id = ANY ($2::uuid[])
)
DELETE FROM change_marks AS c WHERE c.project_id = $1 AND c.session_id = ANY ($2::uuid[])`,
  ),
  activity: DROP_ACTIVITY,
  /** Those that other sessions have as their parent. Rows: id. */
  parents: prepared(
    'find_parents',
    `
SELECT g.id FROM unnest($2::uuid[]) AS g (id)
WHERE EXISTS (SELECT FROM sessions c WHERE c.project_id = $1 AND c.parent_id = g.id OFFSET 0)`,
  ),
  /** Found by the sessions' configs, and so before these are deleted. */
  terms: prepared('erase_session_terms', dropTerms(SESSION_LIST)),
  /** Forks of the sessions forget where they come from. $3 how many. Rows: one a fork. */
  forks: prepared(
    'unlink_forks',
    `
UPDATE sessions AS s SET forked_from = NULL, forked_at_seq = NULL
WHERE s.project_id = $1 AND s.id = ANY (ARRAY(
  SELECT f.id FROM unnest($2::uuid[]) AS g (id) CROSS JOIN LATERAL (
    SELECT o.id FROM sessions o WHERE o.project_id = $1 AND o.forked_from = g.id LIMIT $3) f
  LIMIT $3))
RETURNING 1 AS unlinked`,
  ),
  sessions: prepared(
    'erase_sessions',
    'DELETE FROM sessions AS s WHERE s.project_id = $1 AND s.id = ANY ($2::uuid[])',
  ),
} as const

/**
 * Entries without a session, except those of a copy in progress: remains of a session, or of a copy with an expired
 * lease.
 */
const NOT_LEASED = '(x.leased_until IS NULL OR x.leased_until < now())'

export const ERASE_SLICE_OF_ENTRIES = storedFunctionIn('sessions/erase/erase_slice_of_entries.sql', {
  not_leased: NOT_LEASED,
})

/**
 * Deletes the remains of a session, one slice per statement, from the highest seq down. Each holds the row of
 * erased_sessions, so that concurrent runs take turns. Parameters of each: $1 project, $2 session.
 */
export const ERASE_REMAINS = {
  entries: ERASE_SLICE_OF_ENTRIES.statement,
  done: prepared(
    'forget_remains',
    `DELETE FROM erased_sessions AS x
WHERE x.project_id = $1 AND x.session_id = $2 AND x.last_seq = 0 AND x.leased_until IS NULL`,
  ),
} as const

/** Sessions below one that is gone, the nearest first. Parameters: $1 project, $2 its id, $3 how many. Rows: id. */
export const FIND_BELOW_ERASED = prepared(
  'find_sessions_below_erased',
  `
WITH RECURSIVE below AS (
  SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = $2
  UNION ALL
  SELECT c.id FROM below b CROSS JOIN LATERAL (
    SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = b.id OFFSET 0
  ) c
)
SELECT b.id FROM below b
WHERE EXISTS (SELECT FROM session_heads h WHERE h.project_id = $1 AND h.session_id = b.id OFFSET 0)
LIMIT $3`,
)

/** Sessions of a project with entries still to be deleted. Parameters: $1 project, $2 how many. */
export const FIND_REMAINS = prepared(
  'find_remains',
  `SELECT x.session_id AS id FROM erased_sessions x WHERE x.project_id = $1 AND ${NOT_LEASED} ORDER BY x.session_id LIMIT $2`,
)

/** The same for ids requested for new sessions. Parameters: $1 project, $2 ids. */
export const FIND_REMAINS_OF = prepared(
  'find_remains_of',
  'SELECT x.session_id AS id FROM erased_sessions x WHERE x.project_id = $1 AND x.session_id = ANY ($2::uuid[])',
)

/** Projects with such sessions. One of the few statements that ask every project: for housekeeping alone. */
export const FIND_PROJECTS_WITH_REMAINS = askingEveryProject(
  prepared,
  'find_projects_with_remains',
  `SELECT DISTINCT x.project_id AS id FROM {erased_sessions} x WHERE ${NOT_LEASED}`,
)
