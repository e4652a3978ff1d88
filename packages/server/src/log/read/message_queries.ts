import { mergedJson } from '../../lists/merged_json.js'
import { prepared } from '../../postgres/statement.js'

/**
 * Merges into a message's meta, unless the result exceeds the bytes allowed. The session's head is locked first, as
 * for every change of a session, then the message before it is read, so concurrent merges lose nothing. Rows: session
 * (whether it exists), the merged meta, and whether it was stored (null if there is no such message). Parameters: $1
 * project, $2 session, $3 message, $4 the body as JSON, $5 bytes allowed.
 */
export const MERGE_MESSAGE_META = prepared(
  'merge_message_meta',
  `
WITH head AS MATERIALIZED (
  SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2 FOR UPDATE
), merged AS MATERIALIZED (
  SELECT e.seq, ${mergedJson('coalesce(e.patched_meta, e.meta)', "($4::jsonb -> 'meta')")} AS meta
  FROM entries e
  WHERE e.project_id = $1 AND e.session_id = (SELECT session_id FROM head) AND e.id = $3 AND e.kind = 'message'
  FOR UPDATE
), stored AS (
  UPDATE entries AS e SET patched_meta = m.meta, updated_at = greatest(now(), e.updated_at) FROM merged m
  WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq = m.seq AND octet_length(m.meta::text) <= $5
  RETURNING e.session_id
), moved AS (
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  FROM stored s WHERE h.project_id = $1 AND h.session_id = s.session_id
)
SELECT h.session_id, m.meta::text AS meta, octet_length(m.meta::text) <= $5 AS stored
FROM head h LEFT JOIN merged m ON true`,
)

/** Parameters: $1 project, $2 session. */
export const COUNT_TOKENS = prepared(
  'count_tokens',
  'SELECT h.total_tokens FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2',
)
