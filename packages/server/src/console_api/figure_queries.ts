import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'

/** How much of a session's beginning is read for its figures. */
const ENTRIES_MAX = 200
export const FIGURE_BYTES_MAX = 128 * 1024

/**
 * The heads of sessions, and their first entries as JSON. Parameters: $1 project, $2 session ids. Rows: session_id,
 * last_seq, total_tokens, title, duration_ms, entries.
 */
export const READ_FIGURES = prepared(
  'read_session_figures',
  `SELECT h.session_id, h.last_seq, h.total_tokens,
  CASE WHEN jsonb_typeof(s.configs -> 'title') = 'string' THEN nullif(left(s.configs ->> 'title', 640), '') END AS title,
  coalesce(floor(extract(epoch FROM
    (SELECT l.created_at FROM entries l WHERE l.project_id = $1 AND l.session_id = h.session_id AND l.seq = h.last_seq)
    - (SELECT f.created_at FROM entries f WHERE f.project_id = $1 AND f.session_id = h.session_id AND f.seq = 1)
  ) * 1000), 0)::bigint AS duration_ms,
  coalesce((SELECT json_agg(json_build_object('seq', r.seq, 'kind', r.kind, 'id', r.id, 'parent_id', r.parent_id,
      'type', r.type, 'role', r.role, 'format', r.format, 'created_at', ${timestampText('r.created_at')},
      'data', r.data) ORDER BY r.seq)
    FROM (SELECT e.seq, e.kind, e.id, e.parent_id, e.type, e.role, e.format, e.created_at, e.data,
        sum(e.bytes) OVER (ORDER BY e.seq) AS bytes_so_far
      FROM entries e WHERE e.project_id = $1 AND e.session_id = h.session_id AND e.seq <= ${ENTRIES_MAX}) r
    WHERE r.bytes_so_far <= ${FIGURE_BYTES_MAX}), '[]')::text AS entries
FROM session_heads h JOIN sessions s ON s.project_id = h.project_id AND s.id = h.session_id
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)
