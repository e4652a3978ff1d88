import { markChanges } from '../changes/mark_changes.js'
import { insertTerms } from '../lists/term_queries.js'
import { SESSION_LIST } from '../log/append/configs_queries.js'
import { rememberAnswer } from '../log/append/idempotency_queries.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
import { FIND_OR_CREATE_OWNER } from '../users/user_queries.js'
import { expiryText } from './expiry_queries.js'
import { refuseReservedId } from './session_queries.js'

/**
 * Copies a session with its log, inside the database. Entries keep seqs and times. Ids are derived from the old ones
 * and the new session, so that parent_id can be derived too.
 */

/** Columns of a copied entry, and their values. `copy` is the parameter with the new session's id. */
export const ENTRY_COLUMNS = `project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
    role, format, key, retracted_by, data, meta, patched_meta`

/** `until` is the last seq of the copy: what is retracted behind it is not retracted in the copy. */
export function copiedEntryText(project: string, copy: string, until: string): string {
  return `${project}, ${copy}::uuid, o.seq, o.created_at, o.updated_at, ${copiedId('o.id', copy)}, ${copiedId('o.parent_id', copy)}, o.bytes, o.tokens,
    o.kind, o.type, o.role, o.format, o.key, CASE WHEN o.retracted_by <= ${until} THEN o.retracted_by END, o.data, o.meta, o.patched_meta`
}

/** The references of copied entries to blobs, from behind one seq up to another. */
export function copyReferencesText(
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

export function answerJson(source: string, copy: string): string {
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
export function makeCopyText(given: Readonly<Record<CopyValue, string>>): string {
  return `${FIND_OR_CREATE_OWNER}
  INSERT INTO sessions AS s (project_id, id, user_id, configs, disable_task_tracking, expires_in_s, expiry_due_at,
    created_at, forked_from, forked_at_seq)
  VALUES (p_project, p_copy, coalesce(owner, ${given.user}), coalesce(nullif(p_body -> 'configs', 'null'), ${given.configs}),
    ${given.disable_task_tracking}, ${given.expires_in_s}, ${expiryText('now()', given.expires_in_s)}, now(), p_session, ${given.last_seq})
  RETURNING s.id, s.user_id, s.parent_id, s.configs, s.created_at INTO made;${refuseReservedId('p_copy')}
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted)
  VALUES (p_project, p_copy, ${given.last_seq}, ${given.total_tokens}, greatest(now(), ${given.updated_at}),
    ${copiedId(given.last_message, 'p_copy')}, ${given.bytes}, ${given.last_seq});${insertTerms(SESSION_LIST, 'p_project', '(SELECT made.id, made.user_id, made.parent_id, made.configs, made.created_at)')};${markChanges('p_project', '(SELECT p_copy AS session_id)', { isNew: true })};`
}

/**
 * Copies a session with a short log, up to `p_up_to_seq` or its end. The lock on its head keeps deletions away, so
 * that the log stays as the head says; appends go on. `p_copy` is the id of the copy, `p_body` may have configs for
 * it; `p_user` (an identifier), `p_new_user` (an id for it) and `p_key` may be null. Answer: JSON; null if there is no
 * such session, or its log ends before, or is longer than `p_entries_max` or `p_bytes_max`.
 */
export const COPY_SHORT_SESSION = storedFunction(
  'copy_short_session',
  `p_project uuid, p_session uuid, p_copy uuid, p_up_to_seq bigint, p_user text, p_new_user uuid,
  p_body jsonb, p_key text, p_request_hash text, p_entries_max bigint, p_bytes_max bigint`,
  `DECLARE
  head record;
  log record;
  source record;
  made record;
  owner uuid;
  until bigint;
  answer text;
BEGIN
  SELECT h.last_seq, h.updated_at INTO head
  FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  until := coalesce(p_up_to_seq, head.last_seq);
  IF head.last_seq IS NULL OR until > least(head.last_seq, p_entries_max) THEN
    RETURN NULL;
  END IF;
  SELECT coalesce(sum(o.bytes), 0) AS bytes, coalesce(sum(o.tokens) FILTER (WHERE (o.retracted_by <= until) IS NOT TRUE), 0) AS tokens,
     ${LAST_MESSAGE} AS last_message INTO log
  FROM entries o WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= until;
  IF log.bytes > p_bytes_max THEN
    RETURN NULL;
  END IF;
  SELECT s.user_id, s.configs, s.disable_task_tracking, s.expires_in_s INTO source
  FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;${makeCopyText({
    user: 'source.user_id',
    configs: 'source.configs',
    disable_task_tracking: 'source.disable_task_tracking',
    expires_in_s: 'source.expires_in_s',
    last_seq: 'until',
    total_tokens: 'log.tokens',
    last_message: 'log.last_message',
    updated_at: 'head.updated_at',
    bytes: 'log.bytes',
  })}
  INSERT INTO entries AS e (${ENTRY_COLUMNS})
  SELECT ${copiedEntryText('o.project_id', 'p_copy', 'until')}
  FROM entries o
  WHERE o.project_id = p_project AND o.session_id = p_session AND o.seq <= until;
  ${copyReferencesText('p_project', 'p_session', 'p_copy', '0', 'until')};
  answer := ${answerJson('p_session', 'p_copy')};${rememberAnswer('p_copy')}
  RETURN answer;
END`,
)

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
