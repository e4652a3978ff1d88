import { markChanges } from '@annals/kits/changes/mark_changes.js'
import { insertTerms } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { rememberAnswer, SESSION_LIST } from '../log/append/append_queries.js'
import { FIND_OR_CREATE_OWNER } from '../users/user_queries.js'
import { expiryText } from './expiry_queries.js'
import { refuseReservedId } from './session_queries.js'

/**
 * Copies a session with its log, inside the database. Entries keep seqs and times. Ids are derived from the old ones
 * and the new session, so that parent_id can be derived too.
 */

/** Columns of a copied entry, and their values. `copy` is the parameter with the new session's id. */
const ENTRY_COLUMNS = `project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
    role, format, key, retracted_by, occurred_at, data, meta, patched_meta`

/** `until` is the last seq of the copy: what is retracted after it is not retracted in the copy. */
function copiedEntryText(project: string, copy: string, until: string): string {
  return `${project}, ${copy}::uuid, o.seq, o.created_at, o.updated_at, ${copiedId('o.id', copy)}, ${copiedId('o.parent_id', copy)}, o.bytes, o.tokens,
    o.kind, o.type, o.role, o.format, o.key, CASE WHEN o.retracted_by <= ${until} THEN o.retracted_by END, o.occurred_at, o.data, o.meta, o.patched_meta`
}

function copyReferencesText(
  project: string,
  session: string,
  copy: string,
  after: string,
  until: string,
): string {
  return `INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
  SELECT b.project_id, ${copy}::uuid, b.seq, b.sha256 FROM blob_references b
  WHERE b.project_id = ${project} AND b.owner_id = ${session} AND b.seq > ${after} AND b.seq <= ${until} ORDER BY b.sha256`
}

function copiedId(id: string, copy: string): string {
  return `md5(${id}::text || ${copy}::text)::uuid`
}

function answerJson(source: string, copy: string): string {
  return `json_build_object('old_session_id', ${source}::uuid, 'new_session_id', ${copy})::text`
}

/** The last message of a copy, from the entries `o` of the original. */
const LAST_MESSAGE = "(array_agg(o.id ORDER BY o.seq DESC) FILTER (WHERE o.kind = 'message'))[1]"

type CopyValue =
  | ('user' | 'configs' | 'disable_task_tracking' | 'expires_in_s' | 'last_seq')
  | ('total_tokens' | 'last_message' | 'updated_at' | 'bytes')

/**
 * Steps of a stored function that make the session and head of the copy `p_copy` of `p_session`. `given` names the
 * values: the original's user, unless `p_user` names another one, and what else the copy gets.
 */
function makeCopyText(given: Readonly<Record<CopyValue, string>>): string {
  return `${FIND_OR_CREATE_OWNER}
  SELECT encode(o.proof, 'hex') INTO origin FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= ${given.last_seq} ORDER BY o.seq DESC LIMIT 1;
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, expires_in_s, expiry_due_at,
    created_at, forked_from, forked_at_seq, forked_proof)
  VALUES (p_project, p_copy, coalesce(owner, ${given.user}), coalesce(nullif(p_body -> 'configs', 'null'), ${given.configs}),
    ${given.disable_task_tracking}, ${given.expires_in_s}, ${expiryText('now()', given.expires_in_s)}, now(), p_session, ${given.last_seq}, origin)
  RETURNING s.id, s.user_id, s.parent_id, s.configs, s.created_at INTO made;${refuseReservedId('p_copy')}
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  VALUES (p_project, p_copy, ${given.last_seq}, ${given.total_tokens}, greatest(now(), ${given.updated_at}),
    ${copiedId(given.last_message, 'p_copy')}, ${given.bytes}, ${given.last_seq});${insertTerms(SESSION_LIST, 'p_project', '(SELECT made.id, made.user_id, made.parent_id, made.configs, made.created_at)')};${markChanges('p_project', '(SELECT p_copy AS session_id)', { isNew: true })};`
}

export const COPY_SHORT_SESSION = storedFunctionIn('sessions/copy_short_session.sql', {
  last_message: LAST_MESSAGE,
  make_copy: makeCopyText({
    user: 'source.user_id',
    configs: 'source.configs',
    disable_task_tracking: 'source.disable_task_tracking',
    expires_in_s: 'source.expires_in_s',
    last_seq: 'until',
    total_tokens: 'log.tokens',
    last_message: 'log.last_message',
    updated_at: 'head.updated_at',
    bytes: 'log.bytes',
  }),
  entry_columns: ENTRY_COLUMNS,
  copied_entry: copiedEntryText('o.project_id', 'p_copy', 'until'),
  copy_references: copyReferencesText('p_project', 'p_session', 'p_copy', '0', 'until'),
  answer_json: answerJson('p_session', 'p_copy'),
  remember_answer: rememberAnswer('p_copy'),
})

/**
 * An existing session, and whether it is the copy that a request with its id as use_uuid asks for: `agrees` is true or
 * false, `json` the answer. Parameters: $1 project, $2 original session, $3 id, $4 up_to_seq or null, $5 user
 * identifier or null, $6 the body as JSON.
 */
export const COMPARE_COPY = prepared(
  'compare_copy',
  `
SELECT ${answerJson('$2', 's.id')} AS json,
  s.forked_from IS NOT DISTINCT FROM $2::uuid
  AND ($4::bigint IS NULL OR s.forked_at_seq = $4::bigint)
  AND ($5::text IS NULL OR u.identifier IS NOT DISTINCT FROM $5::text)
  AND coalesce(nullif($6::jsonb -> 'configs', 'null') = s.configs, true) AS agrees
FROM sessions s LEFT JOIN users u ON u.project_id = $1 AND u.id = s.user_id
WHERE s.project_id = $1 AND s.id = $3`,
)

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

export const MAKE_COPIED_SESSION = storedFunctionIn('sessions/make_copied_session.sql', {
  make_copy: makeCopyText({
    user: 'p_owner',
    configs: 'p_configs',
    disable_task_tracking: 'p_disable_task_tracking',
    expires_in_s: 'p_expires_in_s',
    last_seq: 'p_last_seq',
    total_tokens: 'p_total_tokens',
    last_message: 'last_message',
    updated_at: 'p_updated_at',
    bytes: 'p_bytes',
  }),
  answer_json: answerJson('p_session', 'p_copy'),
})

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
