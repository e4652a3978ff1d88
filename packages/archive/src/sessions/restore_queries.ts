import { markChanges } from '@annals/kits/changes/mark_changes.js'
import { insertTerms } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { planned } from '@annals/kits/postgres/statement.js'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { SESSION_LIST } from 'annals/dist/log/append/append_queries.js'
import { digestText, seqText } from 'annals/dist/log/read/compaction_queries.js'
import { expiryText } from 'annals/dist/sessions/expiry_queries.js'
import { readColumns, userJoinText } from '../columns.js'
import { ENTRY, SESSION_LINE } from './session_lines.js'

/**
 * Writes an import. An import restores a log that was appended elsewhere: its ids, seqs and times are given and must
 * be kept, but an append assigns new ones. So these statements bypass the appender and keep its rules: the session's
 * head is locked before its log is read, entries are only inserted directly after the head's last seq, the same
 * transaction moves the head to the last of them, and its total_tokens and last_message_id move with it.
 *
 * Lines of the export arrive as one JSON array and are taken apart here, so that their numbers keep every digit. No
 * statement is prepared: an import often begins with empty tables, and a plan made for these would stay. Look-ups row
 * by row use OFFSET 0, which keeps the planner from reading a whole table to join it.
 */

const FIND_HEADS_TEXT = `
SELECT s.id, u.identifier AS user, ${timestampText('s.created_at')} AS created_at,
  s.disable_task_tracking::text AS disable_task_tracking, h.last_seq, h.proof IS NOT NULL AS is_chained
FROM session_heads h
JOIN sessions s ON s.project_id = $1 AND s.id = h.session_id
${userJoinText('u.id = s.user_id')}
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])
ORDER BY h.session_id`

/** Sessions that exist, and their last seqs. Parameters: $1 project, $2 ids. */
export const FIND_HEADS = planned('find_heads', FIND_HEADS_TEXT)

/** The same, with their heads locked in the appender's order, so that nothing changes until the transaction ends. */
export const LOCK_HEADS = planned('lock_heads', `${FIND_HEADS_TEXT}\nFOR UPDATE OF h`)

/**
 * Sessions with heads and empty logs. Rows: the stored ids, except those whose user does not exist. updated_at is the
 * final one: an append that arrives while entries are still missing gets no earlier time than they have. Parameters:
 * $1 project, $2 lines.
 */
export const RESTORE_SESSIONS = planned(
  'restore_sessions',
  `
WITH given AS MATERIALIZED (
  SELECT l ->> 'user' AS identifier, ${readColumns(SESSION_LINE)}
  FROM jsonb_array_elements($2::jsonb) AS l
), made AS (
  INSERT INTO sessions AS s (project_id, id, user_id, parent_id, expires_in_s, expiry_due_at, configs, disable_task_tracking,
    created_at, forked_from, forked_at_seq, forked_proof)
  SELECT $1, g.id, u.id, g.parent_id, g.expires_in_s, ${expiryText('now()', 'g.expires_in_s')}, g.configs,
    g.disable_task_tracking, g.created_at, g.forked_from, g.forked_at_seq, g.forked_proof
  FROM given g
  ${userJoinText('u.identifier = g.identifier')}
  WHERE g.identifier IS NULL OR u.id IS NOT NULL
  RETURNING s.id, s.user_id, s.parent_id, s.configs, s.created_at
), made_terms AS (${insertTerms(SESSION_LIST, '$1', 'made')}
), made_head AS (
  INSERT INTO session_heads AS h (project_id, session_id, last_seq, total_tokens, updated_at)
  SELECT $1, m.id, 0, 0, g.updated_at FROM made m JOIN given g ON g.id = m.id
), marked AS (${markChanges('$1', '(SELECT m.id AS session_id FROM made m)', { isNew: true })}
)
SELECT id FROM made`,
)

/**
 * The first of new sessions that stands below itself. The file was searched for circles, so one has to lead from a new
 * session to one that was there before, and is looked for only then. OFFSET 0 has each row looked up by itself, rather than
 * all sessions read once. Parameters: $1 project, $2 sessions, $3 the parent of each. Row: id.
 */
export const FIND_CIRCLE = planned(
  'find_circle_of_parents',
  `
WITH RECURSIVE up AS (
  SELECT n.id AS origin, n.parent_id AS id FROM unnest($2::uuid[], $3::uuid[]) AS n (id, parent_id)
  WHERE n.parent_id IS NOT NULL
    AND EXISTS (SELECT FROM sessions c WHERE c.project_id = $1 AND c.parent_id = n.id AND c.id <> ALL ($2::uuid[]) OFFSET 0)
  UNION
  SELECT u.origin, s.parent_id FROM up u
  CROSS JOIN LATERAL (SELECT p.parent_id FROM sessions p WHERE p.project_id = $1 AND p.id = u.id OFFSET 0) s
  WHERE s.parent_id IS NOT NULL AND u.id <> u.origin
)
SELECT u.origin AS id FROM up u WHERE u.id = u.origin LIMIT 1`,
)

/**
 * Notes sessions that are not there as being deleted, whose remains are then deleted as any. Parameters: $1 project, $2
 * lines.
 */
export const RESTORE_ERASED = planned(
  'restore_erased_sessions',
  `
INSERT INTO erased_sessions AS x (project_id, session_id, last_seq, erased_at)
SELECT $1, (l ->> 'session_id')::uuid, 0, now() FROM jsonb_array_elements($2::jsonb) AS l
WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.project_id = $1 AND s.id = (l ->> 'session_id')::uuid)
ON CONFLICT DO NOTHING`,
)

const ENTRY_VALUES = `l ->> 'kind' AS kind, l ->> 'key' AS key, (l ->> 'occurred_at')::timestamptz AS occurred_at,
  decode(l ->> 'proof', 'hex') AS proof, ${readColumns(ENTRY)}`

/**
 * Entries of the lines that differ from the log: another id, content or time at that seq. JSON is compared as text,
 * because equal numbers may be written differently. Fields that may change (patched meta) or are derived (tokens,
 * bytes) are not compared. Rows: session_id, seq (the first that differs). Parameters: $1 project, $2 lines.
 */
export const FIND_DIFFERENT_ENTRIES = planned(
  'find_different_entries',
  `
WITH given AS MATERIALIZED (
  SELECT ${ENTRY_VALUES}
  FROM jsonb_array_elements($2::jsonb) AS l
)
SELECT g.session_id, min(g.seq) AS seq
FROM given g
LEFT JOIN entries e ON e.project_id = $1 AND e.session_id = g.session_id AND e.seq = g.seq
WHERE (e.id, e.kind, e.type, e.role, e.format, e.key, e.parent_id, e.created_at, e.occurred_at, e.data::text, e.meta::text)
  IS DISTINCT FROM (g.id, g.kind, g.type, g.role, g.format, g.key, g.parent_id, g.created_at, g.occurred_at, g.data::text, g.meta::text)
GROUP BY g.session_id`,
)

/**
 * Inserts entries directly after their sessions' last seqs and moves the heads to the last of them. Rows: the
 * sessions whose heads moved, which must be all. Parameters: $1 project, $2 lines; one element per session: $3
 * session, $4 its updated_at in the export.
 */
export const RESTORE_ENTRIES = planned(
  'restore_entries',
  `
WITH made AS (
  INSERT INTO entries AS e (project_id, kind, key, occurred_at, proof, ${Object.keys(ENTRY).join(', ')})
  SELECT $1, ${ENTRY_VALUES}
  FROM jsonb_array_elements($2::jsonb) AS l
  RETURNING e.session_id, e.seq, e.updated_at, e.tokens, e.bytes, e.kind, e.id, e.proof
), moved AS (
  UPDATE session_heads AS h
  SET last_seq = m.last_seq, total_tokens = h.total_tokens + m.tokens, updated_at = greatest(h.updated_at, m.updated_at),
    last_message_id = coalesce(m.last_message_id, h.last_message_id), bytes = h.bytes + m.bytes, counted = h.counted + m.entries,
    proof = coalesce(m.proof, h.proof)
  FROM (
    SELECT n.session_id, count(*) AS entries, sum(n.bytes) AS bytes, min(n.seq) AS first_seq, max(n.seq) AS last_seq, sum(n.tokens) AS tokens,
      greatest(s.updated_at, max(n.updated_at)) AS updated_at,
      (array_agg(n.id ORDER BY n.seq DESC) FILTER (WHERE n.kind = 'message'))[1] AS last_message_id,
      (array_agg(n.proof ORDER BY n.seq DESC))[1] AS proof
    FROM made n JOIN unnest($3::uuid[], $4::timestamptz[]) AS s (session_id, updated_at) ON s.session_id = n.session_id
    GROUP BY n.session_id, s.updated_at
  ) m
  WHERE h.project_id = $1 AND h.session_id = m.session_id AND h.last_seq = m.first_seq - 1
  RETURNING h.session_id
), marked AS (${markChanges('$1', 'moved')}
)
SELECT session_id FROM moved`,
)

/**
 * Marks entries as their retractions name them, whether they were stored just now or are known. Parameters: $1
 * project; one element per retracted entry: $2 session, $3 seq, $4 seq of the retraction.
 */
export const RESTORE_RETRACTIONS = planned(
  'restore_retractions',
  `
WITH marked AS (
  UPDATE entries AS e SET retracted_by = r.retraction_seq
  FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS r (session_id, seq, retraction_seq)
  WHERE e.project_id = $1 AND e.session_id = r.session_id AND e.seq = r.seq AND e.retracted_by IS NULL
  RETURNING e.session_id, e.tokens
)
UPDATE session_heads AS h SET total_tokens = h.total_tokens - m.tokens
FROM (SELECT n.session_id, sum(n.tokens) AS tokens FROM marked n GROUP BY n.session_id) m
WHERE h.project_id = $1 AND h.session_id = m.session_id`,
)

/**
 * Whether a compaction covers what it did. Row: agrees; none if it has no digest, as a caller's event of that type from
 * before there were compactions. Parameters: $1 project, $2 session, $3 seq.
 */
export const CHECK_COMPACTION = planned(
  'check_compaction',
  `
SELECT e.data ->> 'digest' = ${digestText('$1', '$2', seqText('from_seq'), seqText('to_seq'))} AND ${seqText('to_seq')} < e.seq AS agrees
FROM entries e
WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq = $3::bigint AND e.type = '${COMPACTION_TYPE}' AND e.data ? 'digest'`,
)
