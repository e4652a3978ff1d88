import { timestampText } from '../lists/resource_json.js'
import { askingEveryProject, planned, prepared, type Statement } from '../postgres/statement.js'
import { storedInsert } from '../postgres/stored_function.js'

/** Switching on, in one transaction: the table that all machines have first. Parameters of each: $1 project, $2 consumer. */
export const SWITCH_ON = {
  /** Locks the project even where nothing changes: whoever is taking the consumer apart is done first, or waits. */
  project: prepared(
    'switch_consumer_on',
    'UPDATE projects AS p SET consumers = array_remove(p.consumers, $2::text) || $2::text WHERE p.id = $1 RETURNING p.id',
  ),
  consumer: prepared(
    'keep_consumer',
    `
INSERT INTO project_consumers AS c (project_id, consumer, used_at, scan_at, sessions_scanned)
VALUES ($1, $2, now(), now(), 0)
ON CONFLICT (project_id, consumer) DO NOTHING`,
  ),
} as const

/**
 * Says that a consumer is wanted from now on and for good, so that all sessions are looked through, or no longer.
 * Parameters: $1 project, $2 consumer.
 */
export const SWITCH = {
  on: prepared(
    'switch_on_for_good',
    `
INSERT INTO project_consumers AS c (project_id, consumer, used_at, scan_at, sessions_scanned)
VALUES ($1, $2, 'infinity', now(), 0)
ON CONFLICT (project_id, consumer) DO UPDATE SET used_at = excluded.used_at, scan_at = excluded.scan_at, scanned_to = NULL`,
  ),
  /** The same from the start: what it keeps is taken apart before. */
  anew: prepared(
    'switch_on_anew',
    `
INSERT INTO project_consumers AS c (project_id, consumer, used_at, scan_at, sessions_scanned)
VALUES ($1, $2, 'infinity', now(), 0)
ON CONFLICT (project_id, consumer) DO UPDATE SET used_at = excluded.used_at, retired_at = excluded.scan_at`,
  ),
  off: prepared(
    'switch_off',
    "UPDATE project_consumers AS c SET used_at = '-infinity' WHERE c.project_id = $1 AND c.consumer = $2",
  ),
} as const

/** How far a consumer is with a project. Parameters: $1 project, $2 consumer. Row: is_ready, is_old_use, is_for_good, sessions_scanned. */
export const READ_PROJECT_CONSUMER = prepared(
  'read_project_consumer',
  `
SELECT c.scanned_at IS NOT NULL AND c.retired_at IS NULL AS is_ready, c.used_at < now() - interval '1 day' AS is_old_use,
  c.used_at = 'infinity' AS is_for_good, c.sessions_scanned
FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = $2`,
)

/** Notes that it is in use. Parameters: $1 project, $2 consumer. */
export const USE_CONSUMER = prepared(
  'use_consumer',
  `UPDATE project_consumers AS c SET used_at = now()
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NULL`,
)

/** Looking a project's sessions through, a slice in each transaction. Parameters of each: $1 project, $2 consumer. */
export const SCAN = {
  /** Row, if nobody else is at it: where to go on, when it is time, seconds until then, and since when all was seen, if it was. */
  lock: prepared(
    'lock_scan',
    `
SELECT c.scanned_to, ${timestampText('c.scan_at')} AS scan_at, extract(epoch FROM c.scan_at - now()) AS wait_s, extract(epoch FROM now() - c.scanned_at) AS age_s
FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NULL FOR UPDATE SKIP LOCKED`,
  ),
  /** Rows: one if the consumer has not yet seen all that was found, but for what failed. $3 when it was time for it. */
  under_way: prepared(
    'marks_under_way',
    `SELECT c.session_id FROM change_marks c
WHERE c.project_id = $1 AND c.consumer = $2 AND c.marked_at <= $3 AND c.failures = 0 ORDER BY c.due_at LIMIT 1`,
  ),
  /** $3 session reached, $4 sessions in this slice. */
  go_on: prepared(
    'go_on_with_scan',
    `UPDATE project_consumers AS c SET scanned_to = $3, sessions_scanned = c.sessions_scanned + $4
WHERE c.project_id = $1 AND c.consumer = $2`,
  ),
  /** $3 seconds until the next one. */
  end: prepared(
    'end_scan',
    `UPDATE project_consumers AS c
SET scanned_to = NULL, scanned_at = least(c.scanned_at, now()), scan_at = now() + make_interval(secs => $3)
WHERE c.project_id = $1 AND c.consumer = $2`,
  ),
} as const

const NO_SESSION = '00000000-0000-0000-0000-000000000000'
const BEHIND_CURSOR = `h.last_seq > coalesce((
    SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.consumer = $2 AND u.session_id = h.session_id), 0)`

/**
 * The next sessions, and which of them a consumer has not seen as they are. Parameters: $1 project, $2 consumer, $3 session
 * to begin after or null, $4 how many. Row: last_id (of those looked at), sessions, and the ids of those that are `behind`.
 */
export function scanSlice(consumer: string, isBehind: string = BEHIND_CURSOR): Statement {
  return prepared(
    `scan_for_${consumer}`,
    `
SELECT (array_agg(h.session_id ORDER BY h.session_id DESC))[1] AS last_id, count(*) AS sessions,
  array_agg(h.session_id ORDER BY h.session_id) FILTER (WHERE h.is_behind) AS behind
FROM (
  SELECT h.session_id, $2::text IS NOT NULL AND (${isBehind}) AS is_behind FROM (
    SELECT o.session_id, o.last_seq, o.updated_at FROM session_heads o
    WHERE o.project_id = $1 AND o.session_id > coalesce($3::uuid, '${NO_SESSION}') ORDER BY o.session_id LIMIT $4
  ) h
) h`,
  )
}

/**
 * Marks sessions that a scan has found. Parameters: $1 project, $2 consumer, $3 sessions, $4 since when the marks are to be
 * waiting, so that they are told from those that are made meanwhile.
 */
export const MARK_FOUND = storedInsert(
  'mark_found',
  ['text', 'uuid[]', 'timestamptz'],
  `INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
SELECT $1, $2, r.session_id, $4, now(), 0 FROM unnest($3) AS r (session_id)
ON CONFLICT (project_id, session_id, consumer) DO UPDATE SET marked_at = least(c.marked_at, excluded.marked_at)`,
)

/** Whether any project has a consumer: else there is nothing to ask its data for. */
export const HAS_CONSUMERS = prepared(
  'has_consumers',
  "SELECT p.id FROM projects p WHERE p.consumers <> '{}' LIMIT 1",
)

/** A month after its last use. One that is switched on for good has `used_at` in infinity. */
const RETIRES = "(c.retired_at IS NOT NULL OR c.used_at < now() - interval '30 days')"

/**
 * A scan that a stepped clock has put off begins anew: what it has marked so far cannot be told from what was marked
 * since. The first one never waits, nor does one after a scan that ended in the future.
 */
export const SCANS_WAIT = {
  column: 'scan_at',
  at_most: [{ s: 0, which: '(t.scanned_at IS NULL OR t.scanned_at > now())' }, { s: 86_400 }],
  also: 'scanned_to = NULL',
} as const

/** Projects whose sessions are to be looked through, or whose consumer is to be taken apart. Rows: project_id, consumer, retires. */
export const FIND_SCANS = askingEveryProject(
  planned,
  'find_scans',
  `SELECT c.project_id, c.consumer, ${RETIRES} AS retires FROM {project_consumers} c WHERE c.scan_at <= now() OR ${RETIRES}`,
)

/** Taking a consumer of a project apart: its marks and cursors, in slices, then itself. */
export const RETIRE = {
  /** From here on it is ready for nobody. Row: one if it is to go. $1 project, $2 consumer. */
  begin: prepared(
    'retire_consumer',
    `UPDATE project_consumers AS c SET retired_at = now() WHERE c.project_id = $1 AND c.consumer = $2 AND ${RETIRES} RETURNING 1 AS one`,
  ),
  /** Row: one while it is being taken apart. $1 project, $2 consumer. */
  hold: prepared(
    'hold_retired_consumer',
    `SELECT c.consumer FROM project_consumers c
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NOT NULL FOR UPDATE`,
  ),
  /** $1 project, $2 how many, $3 consumer. Rows: one each. */
  marks: someOfConsumer('change_marks'),
  cursors: someOfConsumer('change_cursors'),
  /** $1 project, $2 consumer. */
  project: prepared(
    'switch_consumer_off',
    'UPDATE projects AS p SET consumers = array_remove(p.consumers, $2::text) WHERE p.id = $1',
  ),
  /** Row: one if it is not being taken apart. $1 project, $2 consumer. */
  used: prepared(
    'find_used_consumer',
    `SELECT c.consumer FROM project_consumers c
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NULL`,
  ),
  /** One that was switched on again meanwhile begins anew. $1 project, $2 consumer. */
  revive: prepared(
    'revive_consumer',
    `UPDATE project_consumers AS c
SET retired_at = NULL, scan_at = now(), scanned_to = NULL, scanned_at = NULL, sessions_scanned = 0
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NOT NULL AND NOT (c.used_at < now())`,
  ),
  consumer: prepared(
    'forget_consumer',
    'DELETE FROM project_consumers AS c WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NOT NULL',
  ),
} as const

function someOfConsumer(table: string): Statement {
  return prepared(
    `retire_some_${table}`,
    `DELETE FROM ${table} AS t WHERE t.project_id = $1 AND t.consumer = $3 AND t.session_id = ANY (ARRAY(
  SELECT o.session_id FROM ${table} o WHERE o.project_id = $1 AND o.session_id >= '${NO_SESSION}' AND o.consumer = $3 ORDER BY o.session_id LIMIT $2))
RETURNING 1 AS gone`,
  )
}
