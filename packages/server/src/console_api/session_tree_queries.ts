import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'

/** Sessions above one that are looked for: its parent or what it was copied from, and so on. */
const ABOVE_MAX = 20
/** Sessions below one that are looked at. */
const BELOW_MAX = 500
/** Larger configs are left out. */
const CONFIGS_BYTES_MAX = 8_192

/** A session and those above it, nearest first. Parameters: $1 project, $2 id. Rows: id. */
export const FIND_CHAIN = prepared(
  'find_chain_of_session',
  `WITH RECURSIVE chain AS (
  SELECT s.id, coalesce(s.parent_id, s.forked_from) AS above, 0 AS level FROM sessions s WHERE s.project_id = $1 AND s.id = $2
  UNION ALL
  SELECT a.id, a.above, c.level + 1 FROM chain c CROSS JOIN LATERAL (
    SELECT o.id, coalesce(o.parent_id, o.forked_from) AS above FROM sessions o WHERE o.project_id = $1 AND o.id = c.above OFFSET 0
  ) a WHERE c.level < ${ABOVE_MAX}
)
SELECT c.id FROM chain c ORDER BY c.level`,
)

/** Sub-sessions and forks of sessions, those of the first ones first. Parameters: $1 project, $2 ids, $3 how many. Rows: id. */
export const FIND_BELOW = prepared(
  'find_sessions_below',
  `SELECT b.id FROM unnest($2::uuid[]) WITH ORDINALITY AS g (id, place) CROSS JOIN LATERAL (
  (SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = g.id ORDER BY s.created_at, s.id LIMIT ${BELOW_MAX})
  UNION ALL
  (SELECT f.id FROM sessions f WHERE f.project_id = $1 AND f.forked_from = g.id ORDER BY f.id LIMIT ${BELOW_MAX})
) b LIMIT $3`,
)

/** What is shown of sessions in a tree. Parameters: $1 project, $2 ids. Rows: json. */
export const READ_TREE = prepared(
  'read_session_tree',
  `SELECT json_build_object('id', s.id, 'parent_id', s.parent_id, 'forked_from', s.forked_from, 'forked_at_seq', s.forked_at_seq,
  'created_at', ${timestampText('s.created_at')}, 'updated_at', ${timestampText('h.updated_at')}, 'last_seq', h.last_seq,
  'configs', CASE WHEN octet_length(s.configs::text) <= ${CONFIGS_BYTES_MAX} THEN s.configs ELSE '{}' END)::text AS json
FROM sessions s JOIN session_heads h ON h.project_id = s.project_id AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = ANY ($2::uuid[]) ORDER BY s.created_at, s.id`,
)
