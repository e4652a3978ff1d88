import { insertTerms } from '../lists/term_queries.js'
import { rememberAnswer } from '../log/append/idempotency_queries.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
import { SESSION_LIST } from './session_queries.js'

/**
 * Copies a session with its log, inside the database. Entries keep seqs and times. Ids are derived from the old ones
 * and the new session, so that parent_id can be derived too.
 */

/** Columns of a copied entry, and their values. `copy` is the parameter with the new session's id. */
const ENTRY_COLUMNS = `project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
    role, format, key, retracted_by, data, meta, patched_meta`

function copiedEntry(project: string, copy: string): string {
  return `${project}, ${copy}::uuid, o.seq, o.created_at, o.updated_at, ${copiedId('o.id', copy)}, ${copiedId('o.parent_id', copy)}, o.bytes, o.tokens,
    o.kind, o.type, o.role, o.format, o.key, o.retracted_by, o.data, o.meta, o.patched_meta`
}

function copiedId(id: string, copy: string): string {
  return `md5(${id}::text || ${copy}::text)::uuid`
}

/** The answer, as JSON. */
function answerJson(source: string, copy: string): string {
  return `json_build_object('old_session_id', ${source}::uuid, 'new_session_id', ${copy})::text`
}

/**
 * Copies a session with a short log. The lock on its head keeps deletions away,
 * so that the log stays as the head says; appends go on. `p_copy` is
 * the id of the copy, `p_key` may be null. Answer: JSON; null if there is no such session, or its log is longer than
 * `p_entries_max` or `p_bytes_max`.
 */
export const COPY_SHORT_SESSION = storedFunction(
  'copy_short_session',
  {
    p_project: 'uuid',
    p_session: 'uuid',
    p_copy: 'uuid',
    p_key: 'text',
    p_request_hash: 'text',
    p_entries_max: 'bigint',
    p_bytes_max: 'bigint',
  },
  `DECLARE
  head record;
  bytes bigint;
  made record;
  answer text;
BEGIN
  SELECT h.last_seq, h.total_tokens, h.updated_at, h.last_message_id, h.bytes, h.counted INTO head
  FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  IF NOT FOUND OR head.last_seq > p_entries_max THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(sum(o.bytes), 0) INTO bytes FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= head.last_seq;
  IF bytes > p_bytes_max THEN
    RETURN NULL;
  END IF;
  SELECT s.user_id, s.configs, s.disable_task_tracking INTO made
  FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  VALUES (p_project, p_copy, made.user_id, made.configs, made.disable_task_tracking, now())
  RETURNING s.id, s.user_id, s.configs, s.created_at INTO made;
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  VALUES (p_project, p_copy, head.last_seq, head.total_tokens, greatest(now(), head.updated_at),
    ${copiedId('head.last_message_id', 'p_copy')}, head.bytes, head.counted);${insertTerms(SESSION_LIST, 'p_project', '(SELECT made.id, made.user_id, made.configs, made.created_at)')};
  INSERT INTO entries AS e (${ENTRY_COLUMNS})
  SELECT ${copiedEntry('o.project_id', 'p_copy')}
  FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= head.last_seq;
  answer := ${answerJson('p_session', 'p_copy')};${rememberAnswer('p_copy')}
  RETURN answer;
END`,
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
SELECT ${copiedEntry('$1', '$3')}
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

/** Makes the copy's session and head. Answer: JSON. */
export const MAKE_COPIED_SESSION = storedFunction(
  'make_copied_session',
  {
    p_project: 'uuid',
    p_session: 'uuid',
    p_copy: 'uuid',
    p_user: 'uuid',
    p_configs: 'jsonb',
    p_disable_task_tracking: 'boolean',
    p_last_seq: 'bigint',
    p_total_tokens: 'bigint',
    p_last_message: 'uuid',
    p_updated_at: 'timestamptz',
    p_bytes: 'bigint',
    p_counted: 'bigint',
  },
  `BEGIN
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, created_at)
  VALUES (p_project, p_copy, p_user, p_configs, p_disable_task_tracking, now());
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  VALUES (p_project, p_copy, p_last_seq, p_total_tokens, greatest(now(), p_updated_at),
    ${copiedId('p_last_message', 'p_copy')}, p_bytes, p_counted);${insertTerms(SESSION_LIST, 'p_project', '(SELECT p_copy AS id, p_user AS user_id, p_configs AS configs, now() AS created_at)')};
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
  session: MAKE_COPIED_SESSION.statement,
  /** Parameters: $1 project, $2 key, $3 id of the copy, $4 the answer. */
  key: prepared(
    'answer_key_of_copy',
    'UPDATE idempotency_keys AS k SET answer = $4 WHERE k.project_id = $1 AND k.key = $2 AND k.owner_id = $3',
  ),
} as const
