import { prepared } from '@annals/kits/postgres/statement.js'

/**
 * Sessions that are there, whether anything was said in them, and which of some keys their configs have. Parameters: $1
 * project, $2 sessions, $3 keys. Rows: session_id, has_messages, keys.
 */
export const FIND_OTEL_SESSIONS = prepared(
  'find_otel_sessions',
  `
SELECT h.session_id, h.last_message_id IS NOT NULL AS has_messages,
  (SELECT string_agg(k.key, ',') FROM unnest($3::text[]) AS k (key) WHERE s.configs ? k.key) AS keys
FROM session_heads h JOIN sessions s ON s.project_id = $1 AND s.id = h.session_id
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)
