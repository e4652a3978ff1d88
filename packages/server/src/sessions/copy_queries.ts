import { insertTerms } from '../lists/term_queries.js'
import { prepared } from '../postgres/statement.js'

/**
 * Copies a session with its log, inside the database. Entries keep seqs and times. Ids are derived from the old ones
 * and the new session, so that parent_id can be derived too.
 */

/** Columns of a copied entry, and their values. `copy` is the parameter with the new session's id. */
const ENTRY_COLUMNS = `project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
    role, format, data, meta, patched_meta`

function copiedEntry(copy: string): string {
  return `$1, ${copy}::uuid, o.seq, o.created_at, o.updated_at, ${copiedId('o.id', copy)}, ${copiedId('o.parent_id', copy)}, o.bytes, o.tokens,
    o.kind, o.type, o.role, o.format, o.data, o.meta, o.patched_meta`
}

function copiedId(id: string, copy: string): string {
  return `md5(${id}::text || ${copy}::text)::uuid`
}

/** The answer, as JSON. */
function answerJson(source: string, copy: string): string {
  return `json_build_object('old_session_id', ${source}::uuid, 'new_session_id', ${copy})::text`
}

/**
 * Copies a session with a short log: one statement, one snapshot. Row: the answer as JSON; none if there is no such
 * session, or its log is longer. Parameters: $1 project, $2 session, $3 id of the copy, $4 idempotency key or null,
 * $5 request hash, $6 most entries and $7 most bytes to copy.
 */
export const COPY_SHORT_SESSION = prepared(
  'copy_short_session',
  `
WITH source AS MATERIALIZED (
  SELECT s.user_id, s.configs, s.disable_task_tracking, h.last_seq, h.total_tokens, h.updated_at, h.last_message_id,
    h.bytes, h.counted
  FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
  WHERE s.project_id = $1 AND s.id = $2 AND h.last_seq <= $6
    AND (SELECT coalesce(sum(o.bytes), 0) FROM entries o
      WHERE o.project_id = $1 AND o.session_id = $2 AND o.seq <= $6) <= $7
), made AS (
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  SELECT $1, $3::uuid, c.user_id, c.configs, c.disable_task_tracking, now() FROM source c
  RETURNING s.id, s.user_id, s.configs, s.created_at
), made_terms AS (${insertTerms('sessions', '$1', 'made')}
), made_head AS (
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  SELECT $1, $3::uuid, c.last_seq, c.total_tokens, greatest(now(), c.updated_at), ${copiedId('c.last_message_id', '$3')}, c.bytes, c.counted
  FROM source c
), made_entries AS (
  INSERT INTO entries AS e (${ENTRY_COLUMNS})
  SELECT ${copiedEntry('$3')}
  FROM entries o
  WHERE o.project_id = $1 AND o.session_id = $2 AND o.seq <= (SELECT c.last_seq FROM source c)
), answer AS (
  SELECT ${answerJson('$2', 'm.id')} AS json FROM made m
), remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
  SELECT $1, $4::text, $5::text, $3::uuid, now(), a.json FROM answer a WHERE $4::text IS NOT NULL
)
SELECT json FROM answer`,
)

/** How long a copy's lease lasts after each slice, in seconds: many times as long as a slice takes. */
const LEASE_S = 30
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
SELECT s.user_id, s.configs::text AS configs, s.disable_task_tracking, s.created_at::text AS created_at,
  h.last_seq, h.total_tokens, h.last_message_id, h.bytes, h.counted
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2`,
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
   * Rows: the copied seqs. Parameters: $1 project, $2 session, $3 id of the copy, $4 seq to start after, $5 last seq,
   * $6 bytes after which the slice ends.
   */
  entries: prepared(
    'copy_slice_of_entries',
    `
INSERT INTO entries AS e (${ENTRY_COLUMNS})
SELECT ${copiedEntry('$3')}
FROM (
  SELECT i.*, sum(i.bytes) OVER (ORDER BY i.seq ROWS UNBOUNDED PRECEDING) - i.bytes AS bytes_before
  FROM entries i WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $4 AND i.seq <= $5
) o
WHERE o.bytes_before < $6
RETURNING e.seq`,
  ),
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
SELECT h.updated_at::text AS updated_at
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2 AND s.created_at = $3::timestamptz`,
  ),
  /** Row: one if the writer still has the lease. Parameters: $1 project, $2 id of the copy, $3 last seq. */
  release: prepared(
    'release_copy',
    `
DELETE FROM erased_sessions AS x
WHERE x.project_id = $1 AND x.session_id = $2 AND x.last_seq = $3 AND x.leased_until IS NOT NULL
RETURNING x.session_id`,
  ),
  /**
   * Row: the answer as JSON. Parameters: $1 project, $2 original session, $3 id of the copy, $4 user or null, $5
   * configs, $6 disable_task_tracking, $7 last seq, $8 total tokens, and of the original: $9 last message, $10 time
   * of the last change, $11 bytes and $12 how many entries these cover.
   */
  session: prepared(
    'make_copied_session',
    `
WITH made AS (
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  SELECT $1, $3::uuid, $4::uuid, $5::jsonb, $6::boolean, now()
  RETURNING s.id, s.user_id, s.configs, s.created_at
), made_terms AS (${insertTerms('sessions', '$1', 'made')}
), made_head AS (
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  SELECT $1, m.id, $7::bigint, $8::bigint, greatest(now(), $10::timestamptz), ${copiedId('$9::uuid', '$3')}, $11::bigint, $12::bigint
  FROM made m
)
SELECT ${answerJson('$2', 'm.id')} AS json FROM made m`,
  ),
  /** Parameters: $1 project, $2 key, $3 id of the copy, $4 the answer. */
  key: prepared(
    'answer_key_of_copy',
    'UPDATE idempotency_keys AS k SET answer = $4 WHERE k.project_id = $1 AND k.key = $2 AND k.owner_id = $3',
  ),
} as const

/**
 * Ends the leases of copies, and deletes their keys: their entries become remains of sessions (see ERASE_REMAINS),
 * and a repeat of the request starts again. Rows: id (of each). Parameters: $1 project.
 */
export const END_COPIES = {
  /** $2 id of the copy. */
  own: endCopies('end_copy', 'x.session_id = $2'),
  /** The same if its lease has expired. */
  abandoned: endCopies('end_abandoned_copy', 'x.session_id = $2 AND x.leased_until < now()'),
  /** $2 sessions that are being copied. */
  of_sources: endCopies('end_copies_of_sessions', 'x.source_id = ANY ($2::uuid[])'),
} as const

function endCopies(name: string, which: string) {
  return prepared(
    name,
    `
WITH ended AS (
  UPDATE erased_sessions AS x SET leased_until = NULL
  WHERE x.project_id = $1 AND x.leased_until IS NOT NULL AND ${which}
  RETURNING x.session_id
), forgotten AS (
  DELETE FROM idempotency_keys AS k USING ended n WHERE k.project_id = $1 AND k.owner_id = n.session_id
)
SELECT n.session_id AS id FROM ended n`,
  )
}
