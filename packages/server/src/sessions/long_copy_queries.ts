import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
import {
  answerJson,
  copiedEntryText,
  copyReferencesText,
  ENTRY_COLUMNS,
  makeCopyText,
} from './copy_queries.js'

/** How long a copy's lease lasts after each slice, in seconds: many times as long as a slice takes. */
const LEASE_S = 30
/** Twice as long: one that is being made has its next lease by then. */
export const COPIES_WAIT = { column: 'leased_until', at_most: [{ s: 2 * LEASE_S }] } as const
const LEASED_UNTIL = `now() + make_interval(secs => ${LEASE_S})`

/** Begins the copy of a long session, in one transaction. Parameters of each: $1 project, $2 session. */
export const BEGIN_COPY = {
  /** A deletion of the session comes before this transaction, or after it and then finds the copy. */
  lock: prepared(
    'lock_copied_session',
    'SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2 FOR KEY SHARE',
  ),
  /** The session to copy. */
  source: prepared(
    'read_copied_session',
    `
SELECT s.user_id, s.configs::text AS configs, s.disable_task_tracking, s.expires_in_s, ${timestampText('s.created_at')} AS created_at,
  h.last_seq
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2`,
  ),
  /**
   * Makes sure that no session has the id of the copy, $2. The row is deleted again in the same transaction, and
   * whoever inserts the same id meanwhile waits for the end of it, and then finds the lease.
   */
  reserve: prepared(
    'reserve_id_of_copy',
    `
INSERT INTO sessions AS s (project_id, id, configs, disable_task_tracking, created_at)
VALUES ($1, $2, '{}', false, now())`,
  ),
  reserved: prepared(
    'unreserve_id_of_copy',
    'DELETE FROM sessions AS s WHERE s.project_id = $1 AND s.id = $2',
  ),
  /** $3 id of the copy. */
  lease: prepared(
    'lease_copy',
    `
INSERT INTO erased_sessions AS x (project_id, session_id, last_seq, erased_at, source_id, leased_until)
VALUES ($1, $3, 0, now(), $2, ${LEASED_UNTIL})`,
  ),
  /** The key without an answer: the copy is in progress. $2 key, $3 request hash, $4 id of the copy. */
  key: prepared(
    'keep_key_of_copy',
    `
INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at)
VALUES ($1, $2, $3, $4, now())`,
  ),
} as const

/** Copies the next slice, in one transaction. */
export const COPY_SLICE = {
  /**
   * Rows: seq, bytes and tokens (0 if it is retracted) of each copied entry. Parameters: $1 project, $2 session, $3 id of the copy, $4 seq to start after, $5 last seq,
   * $6 bytes after which the slice ends, $7 last seq of the copy.
   */
  entries: prepared(
    'copy_slice_of_entries',
    `
INSERT INTO entries AS e (${ENTRY_COLUMNS})
SELECT ${copiedEntryText('$1', '$3', '$7::bigint')}
FROM (
  SELECT i.*, sum(i.bytes) OVER (ORDER BY i.seq ROWS UNBOUNDED PRECEDING) - i.bytes AS bytes_before
  FROM entries i WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $4 AND i.seq <= $5
) o
WHERE o.bytes_before < $6
RETURNING e.seq, e.bytes, CASE WHEN e.retracted_by IS NULL THEN e.tokens ELSE 0 END AS tokens`,
  ),
  references: prepared('copy_slice_of_references', copyReferencesText('$1', '$2', '$3', '$4', '$5')),
  /**
   * Row: one if the writer still has the lease. Parameters: $1 project, $2 id of the copy, $3 seq up to which it was
   * copied, $4 the new one.
   */
  move: prepared(
    'move_copy',
    `
UPDATE erased_sessions AS x SET last_seq = $4, leased_until = ${LEASED_UNTIL}
WHERE x.project_id = $1 AND x.session_id = $2 AND x.last_seq = $3 AND x.leased_until IS NOT NULL
RETURNING x.session_id`,
  ),
} as const

/** Makes the copy's session and head. Answer: JSON; null: see FIND_OR_CREATE_OWNER. */
export const MAKE_COPIED_SESSION = storedFunction(
  'make_copied_session',
  `p_project uuid, p_session uuid, p_copy uuid, p_user text, p_new_user uuid, p_body jsonb,
  p_owner uuid, p_configs jsonb, p_disable_task_tracking boolean, p_expires_in_s int,
  p_last_seq bigint, p_total_tokens bigint, p_updated_at timestamptz, p_bytes bigint`,
  `DECLARE
  made record;
  owner uuid;
  last_message uuid;
BEGIN
  SELECT o.id INTO last_message FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.kind = 'message' AND o.seq <= p_last_seq
  ORDER BY o.seq DESC LIMIT 1;${makeCopyText({
    user: 'p_owner',
    configs: 'p_configs',
    disable_task_tracking: 'p_disable_task_tracking',
    expires_in_s: 'p_expires_in_s',
    last_seq: 'p_last_seq',
    total_tokens: 'p_total_tokens',
    last_message: 'last_message',
    updated_at: 'p_updated_at',
    bytes: 'p_bytes',
  })}
  RETURN ${answerJson('p_session', 'p_copy')};
END`,
)

/** Makes a copy with all its entries a session, in one transaction and in this order. */
export const FINISH_COPY = {
  /** Waits for an erasure of the user, in the same lock order. Parameters: $1 project, $2 user. */
  user: prepared(
    'share_user',
    'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.id = $2 FOR KEY SHARE',
  ),
  /**
   * The original session if it still exists, and was not replaced by another one with its id. Parameters: $1 project,
   * $2 session, $3 its created_at.
   */
  source: prepared(
    'find_copied_session',
    `
SELECT ${timestampText('h.updated_at')} AS updated_at
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2 AND s.created_at = $3::timestamptz`,
  ),
  release: prepared(
    'release_copy',
    `
DELETE FROM erased_sessions AS x
WHERE x.project_id = $1 AND x.session_id = $2 AND x.last_seq = $3 AND x.leased_until IS NOT NULL
RETURNING x.session_id`,
  ),
  session: MAKE_COPIED_SESSION.statement,
  key: prepared(
    'answer_key_of_copy',
    'UPDATE idempotency_keys AS k SET answer = $4 WHERE k.project_id = $1 AND k.key = $2 AND k.owner_id = $3',
  ),
} as const
