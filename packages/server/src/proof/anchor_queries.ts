import { planned, prepared } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'

/** Parameters: $1 destination, $2 a chain, $3 `previous` of a first anchor. */
export const ADD_DESTINATION = prepared(
  'add_proof_destination',
  `INSERT INTO proof_destinations AS n (destination, chain, nth, previous, held_until)
VALUES ($1, $2, 0, $3, '-infinity') ON CONFLICT (destination) DO NOTHING`,
)

/**
 * Takes a destination that nobody holds, unless its last pass was less than a while ago. A clock that was set back makes
 * nobody wait longer. Parameters: $1 destination,
 * $2 holder, $3 seconds until others may take it, $4 seconds since the last pass. Row: where it stands, if it was taken.
 */
export const TAKE_DESTINATION = prepared(
  'take_proof_destination',
  `UPDATE proof_destinations AS d SET holder = $2, held_until = now() + make_interval(secs => $3)
WHERE d.destination = $1 AND (d.held_until <= now() OR d.held_until > now() + make_interval(secs => $3))
  AND (d.passed_at IS NULL OR d.passed_at <= now() - make_interval(secs => $4) OR d.passed_at > now() OR d.failure IS NOT NULL)
RETURNING d.chain, d.nth, d.previous, d.line`,
)

const HELD = 'd.destination = $1 AND d.holder = $2'

/** Steps of a destination's holder. Parameters: $1 destination, $2 holder. Row: one, if it still is. */
export const HOLD = {
  /** Numbers an anchor. $3 seconds, $4 nth, $5 the hash of its statement, $6 its line. */
  number: prepared(
    'number_anchor',
    `UPDATE proof_destinations AS d SET held_until = now() + make_interval(secs => $3), nth = $4, previous = $5, line = $6
WHERE ${HELD} AND d.nth = $4 - 1 AND d.line IS NULL RETURNING d.nth`,
  ),
  /** Goes on. $3 seconds. */
  renew: prepared(
    'renew_proof_destination',
    `UPDATE proof_destinations AS d SET held_until = now() + make_interval(secs => $3) WHERE ${HELD} RETURNING d.nth`,
  ),
  /** It has arrived. $3 nth. */
  arrived: prepared(
    'note_anchor',
    `UPDATE proof_destinations AS d SET line = NULL WHERE ${HELD} AND d.nth = $3 AND d.line IS NOT NULL RETURNING d.nth`,
  ),
  /** Goes on after an anchor that this database did not make. $3 nth, $4 the hash of its statement, $5 another chain. */
  adopt: prepared(
    'adopt_anchors',
    `UPDATE proof_destinations AS d SET nth = $3, previous = $4, chain = $5, line = NULL WHERE ${HELD} RETURNING d.nth`,
  ),

  leave: prepared(
    'leave_proof_destination',
    `UPDATE proof_destinations AS d SET held_until = now(), failure = NULL, passed_at = now() WHERE ${HELD} RETURNING d.nth`,
  ),
  /** $3 why. */
  fail: prepared(
    'fail_proof_destination',
    `UPDATE proof_destinations AS d SET held_until = now(), failure = $3 WHERE ${HELD} RETURNING d.nth`,
  ),
} as const

/** Those that have ever had chains. */
export const LIST_CHAINED_PROJECTS = planned(
  'list_chained_projects',
  'SELECT p.id FROM projects p WHERE p.proof IS NOT NULL ORDER BY p.id',
)

/** Heads that differ from the last anchor. Parameters: $1 project, $2 chain, $3 session to start after or null, $4 how many. */
export const FIND_CHANGED_HEADS = planned(
  'find_changed_heads',
  `SELECT h.session_id, h.last_seq AS seq, encode(h.proof, 'hex') AS head
FROM session_heads h
LEFT JOIN proof_heads a ON a.project_id = $1 AND a.chain = $2 AND a.session_id = h.session_id
WHERE h.project_id = $1 AND h.session_id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000') AND h.proof IS NOT NULL
  AND a.head IS DISTINCT FROM h.proof
ORDER BY h.session_id LIMIT $4`,
)

/** Last anchors of sessions that are gone. Parameters: $1 project, $2 chain, $3 how many. */
export const FIND_GONE_HEADS = planned(
  'find_gone_heads',
  `SELECT a.session_id, a.seq, encode(a.head, 'hex') AS head
FROM proof_heads a
WHERE a.project_id = $1 AND a.chain = $2
  AND NOT EXISTS (SELECT FROM session_heads h WHERE h.project_id = $1 AND h.session_id = a.session_id AND h.proof IS NOT NULL)
ORDER BY a.session_id LIMIT $3`,
)

/** Parameters: $1 project, $2 chain, $3 nth, $4 statement. */
export const ADD_ANCHOR = prepared(
  'add_proof_anchor',
  'INSERT INTO proof_anchors AS n (project_id, chain, nth, statement) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
)

const LIVE = `FROM unnest($4::uuid[], $5::bigint[], $6::text[], $7::text[], $8::int[]) AS l (session_id, seq, head, path, place)`

/** Parameters: $1 project, $2 chain, $3 nth; by live leaf: $4 session, $5 seq, $6 head, $7 path, $8 place. */
export const ADD_LEAVES = storedInsert(
  'add_proof_leaves',
  ['uuid', 'bigint', 'uuid[]', 'bigint[]', 'text[]', 'text[]', 'int[]'],
  `INSERT INTO proof_leaves AS n (project_id, session_id, seq, chain, nth, place, head, path)
SELECT $1, l.session_id, l.seq, $2, $3, l.place, decode(l.head, 'hex'), decode(l.path, 'hex') ${LIVE}
ON CONFLICT (project_id, session_id, seq, chain) DO UPDATE
SET nth = excluded.nth, place = excluded.place, head = excluded.head, path = excluded.path`,
)

/** Parameters: $1 project, $2 chain; by live leaf: $3 session, $4 seq, $5 head. */
export const SET_ANCHORED_HEADS = storedInsert(
  'set_anchored_heads',
  ['uuid', 'uuid[]', 'bigint[]', 'text[]'],
  `INSERT INTO proof_heads AS n (project_id, chain, session_id, seq, head)
SELECT $1, $2, l.session_id, l.seq, decode(l.head, 'hex') FROM unnest($3::uuid[], $4::bigint[], $5::text[]) AS l (session_id, seq, head)
ON CONFLICT (project_id, chain, session_id) DO UPDATE SET seq = excluded.seq, head = excluded.head`,
)

/** Deletes the heads of sessions that were anchored as erased. Parameters: $1 project, $2 sessions, $3 chain. */
export const FORGET_HEADS = prepared(
  'forget_anchored_heads',
  'DELETE FROM proof_heads AS a WHERE a.project_id = $1 AND a.session_id = ANY ($2::uuid[]) AND a.chain = $3',
)
export const FORGET_LEAVES = prepared(
  'forget_proof_leaves',
  'DELETE FROM proof_leaves AS l WHERE l.project_id = $1 AND l.session_id = ANY ($2::uuid[]) AND l.chain = $3',
)

/** Parameters: $1 project, $2 chain. */
export const FORGET_CHAIN = planned(
  'forget_anchored_chain',
  'DELETE FROM proof_heads AS a WHERE a.project_id = $1 AND a.chain = $2',
)

/** For the doctor. Rows: each destination. */
export const LIST_DESTINATIONS = planned(
  'list_proof_destinations',
  `SELECT d.destination, d.nth, d.line IS NOT NULL AS is_pending, d.failure, extract(epoch FROM now() - d.passed_at)::bigint AS passed_s
FROM proof_destinations d ORDER BY d.destination`,
)
