import { timestampText } from '../lists/resource_json.js'
import { askingEveryProject, planned, prepared, type Statement } from '../postgres/statement.js'
import { storedInsert } from '../postgres/stored_function.js'
import type { Consumer } from './consumer.js'

/** Consumers of changes, and their marks: see migrations/0010_marks_of_change.sql. */

/**
 * Takes up sessions that are due, so many at most as the consumer is given at once, until a lease ends. None while it
 * is being taken apart: a cursor that was written meanwhile would stand for rows that are gone.
 * Parameters: $1 project, $2 consumer, $3 lease, $4 its seconds. Rows: session_id, failures; what was due first comes first.
 */
export function leaseMarks({ name, sessions_max }: Pick<Consumer, 'name' | 'sessions_max'>): Statement {
  return prepared(
    `lease_marks_for_${name}`,
    `
WITH due AS MATERIALIZED (
  SELECT c.session_id, c.due_at FROM change_marks c WHERE c.project_id = $1 AND c.consumer = $2 AND c.due_at <= now()
    AND NOT EXISTS (SELECT FROM project_consumers p WHERE p.project_id = $1 AND p.consumer = $2 AND p.retired_at IS NOT NULL)
  ORDER BY c.due_at LIMIT ${sessions_max} FOR UPDATE SKIP LOCKED
), leased AS (
  UPDATE change_marks AS c SET lease = $3, due_at = now() + make_interval(secs => $4)
  FROM due d
  WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = d.session_id
  RETURNING c.session_id, c.failures, d.due_at
)
SELECT l.session_id, l.failures FROM leased l ORDER BY l.due_at`,
  )
}

/** Where sessions stand, and up to where a consumer has read them. No row for one that is gone. Parameters: $1 project, $2 consumer, $3 sessions. */
export const READ_CHANGED_HEADS = prepared(
  'read_changed_heads',
  `
SELECT h.session_id, h.last_seq, ${timestampText('h.updated_at')} AS updated_at, coalesce((
    SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.consumer = $2 AND u.session_id = h.session_id
  ), 0) AS after_seq
FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($3::uuid[])`,
)

/**
 * A piece of the logs of several sessions, in their order and that of seq. Parameters: $1 project, $2 sessions, $3 the
 * seqs to begin after, $4 to end with, $5 bytes after which it ends. Rows: place of the session, and the entry.
 */
export const READ_CHANGED_ENTRIES = prepared(
  'read_changed_entries',
  `
SELECT o.place, o.seq, o.id, o.kind, o.type, o.role, o.format, ${timestampText('o.created_at')} AS created_at,
  ${timestampText('o.occurred_at')} AS occurred_at, o.data::text AS data, coalesce(o.patched_meta, o.meta)::text AS meta
FROM (
  SELECT r.place, i.*, sum(i.bytes) OVER (ORDER BY r.place, i.seq ROWS UNBOUNDED PRECEDING) - i.bytes AS bytes_before
  FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS r (session_id, after_seq, last_seq, place)
  CROSS JOIN LATERAL (
    SELECT e.* FROM entries e
    WHERE e.project_id = $1 AND e.session_id = r.session_id AND e.seq > r.after_seq AND e.seq <= r.last_seq
  ) i
) o
WHERE o.bytes_before < $5 ORDER BY o.place, o.seq`,
)

export const MOVE_CURSORS = storedInsert(
  'move_cursors',
  ['text', 'uuid[]', 'bigint[]'],
  `INSERT INTO change_cursors AS u (project_id, consumer, session_id, seq)
SELECT $1, $2, r.session_id, r.seq FROM unnest($3, $4) AS r (session_id, seq)
ON CONFLICT (project_id, session_id, consumer) DO UPDATE SET seq = excluded.seq`,
)

/**
 * Ends a piece of work, in one transaction and in this order. The mark's lock is what makes it this one's work to
 * write. Nothing in it waits for a head: who holds one may wait for the mark. Parameters of each: $1 project, $2 consumer.
 */
export const FINISH_CHANGES = {
  /** $3 sessions, $4 lease. Rows: those that are still this one's. */
  lock: prepared(
    'lock_marks',
    `
SELECT c.session_id FROM change_marks c
WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = ANY ($3::uuid[]) AND c.lease = $4
ORDER BY c.session_id FOR UPDATE`,
  ),
  /** $3 sessions, $4 the seqs up to which they were read. */
  cursors: MOVE_CURSORS.statement,
  /** $3 sessions. */
  forget: prepared(
    'forget_cursors',
    'DELETE FROM change_cursors AS u WHERE u.project_id = $1 AND u.consumer = $2 AND u.session_id = ANY ($3::uuid[])',
  ),
  /**
   * Rows: of the sessions, those that are as they were read, with their heads locked until the commit: an append is
   * after it and marks anew, or was before it and is seen here. One that is being written to is left out.
   * $2 sessions, $3 their last seqs, $4 and updated_at.
   */
  unmoved: prepared(
    'lock_unmoved_heads',
    `
SELECT h.session_id FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[]) AS r (session_id, last_seq, updated_at)
JOIN session_heads h ON h.project_id = $1 AND h.session_id = r.session_id AND h.last_seq = r.last_seq AND h.updated_at = r.updated_at
FOR UPDATE OF h SKIP LOCKED`,
  ),
  /** $3 sessions. */
  clear: prepared(
    'clear_marks',
    'DELETE FROM change_marks AS c WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = ANY ($3::uuid[])',
  ),
  /**
   * Those that have more are due again, after all others; those of which nothing was read, where they were: or else what
   * waits would be read in any order. $3 sessions, $4 up to when each was read, null where nothing was: what is left to
   * read was stored no earlier.
   */
  release: prepared(
    'release_marks',
    `
UPDATE change_marks AS c SET lease = NULL, due_at = least(now(), greatest(c.marked_at, r.behind)),
  marked_at = greatest(c.marked_at, r.read_to), failures = 0
FROM (
  SELECT x.*, CASE WHEN x.read_to IS NOT NULL THEN timestamptz 'infinity' END AS behind
  FROM unnest($3::uuid[], $4::timestamptz[]) AS x (session_id, read_to)
) r
WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = r.session_id`,
  ),
} as const

/**
 * Hands back what is still under a lease: when the service stops, or when nobody knows whether it was taken up. What is
 * leased is due later. Parameters: $1 project, $2 consumer, $3 lease.
 */
export const RETURN_MARKS = {
  ...prepared(
    'return_marks',
    `
UPDATE change_marks AS c SET lease = NULL, due_at = now()
WHERE c.project_id = $1 AND c.consumer = $2 AND c.due_at > now() AND c.lease = $3`,
  ),
  outlivesAbort: true,
}

/**
 * Puts off what failed, by a second, two, four and so on up to an hour. In an UPDATE, Citus applies only immutable
 * functions to columns, which adding an interval to a time is not. Parameters: $1 project, $2 consumer, $3 sessions, $4 lease.
 */
export const POSTPONE_MARKS = prepared(
  'postpone_marks',
  `
UPDATE change_marks AS c SET lease = NULL, failures = c.failures + 1,
  due_at = to_timestamp(extract(epoch FROM now())::float8 + least(3600, power(2, least(c.failures, 12))))
WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = ANY ($3::uuid[]) AND c.lease = $4`,
)

/** How long marks wait at most. One that nobody has and that has not failed is due by its order, whatever its time. */
export const MARKS_WAIT = {
  column: 'due_at',
  at_most: [
    { s: 0, which: 't.lease IS NULL AND t.failures = 0' },
    // A lease, or 2^6 seconds after the seventh failure.
    { s: 64, which: '(t.lease IS NOT NULL OR t.failures <= 7)' },
    { s: 3_600 },
  ],
} as const

/** Marks of all projects, asked for now and then: rows project_id, consumer, sessions, due, age_s (of the oldest mark). */
export const FIND_MARKS = askingEveryProject(
  planned,
  'find_marks',
  `SELECT c.project_id, c.consumer, count(*) AS sessions, count(*) FILTER (WHERE c.due_at <= now()) AS due,
  greatest(0, extract(epoch FROM now() - min(c.marked_at))) AS age_s
FROM {change_marks} c GROUP BY c.project_id, c.consumer`,
)
