import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'

/** Parameters: $1 actor, $2 action, $3 project, $4 details as JSON. */
export const ADD_ACT = prepared(
  'add_act',
  `
INSERT INTO audit AS a (seq, created_at, actor, action, project_id, details)
SELECT coalesce(max(o.seq), 0) + 1, now(), $1::text, $2::text, $3::uuid, $4::jsonb FROM audit o`,
)

/** Acts in order. Parameters: $1 seq to begin with, $2 how many. Rows: seq, created_at, json. */
export const LIST_ACTS = prepared(
  'list_acts',
  `
SELECT a.seq, ${timestampText('a.created_at')} AS created_at, json_build_object('seq', a.seq, 'created_at', ${timestampText('a.created_at')}, 'actor', a.actor,
  'action', a.action, 'project_id', a.project_id, 'details', a.details)::text AS json
FROM audit a WHERE a.seq >= $1 ORDER BY a.seq LIMIT $2`,
)
