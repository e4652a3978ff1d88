import { timestamps, timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

export const LEARNING_CONSUMER = 'learning'

function spaceSessionJson(row: string): string {
  return `json_build_object('id', ${row}.id, 'learning_space_id', ${row}.learning_space_id, 'session_id', ${row}.session_id,
    'status', ${row}.status, 'error', ${row}.error, 'learnt_seq', ${row}.learnt_seq, ${timestamps(row)})::text`
}

export const ATTACH_SESSION = storedFunctionIn('learning/sessions/attach_session_to_space.sql', {
  consumer: LEARNING_CONSUMER,
  answer: spaceSessionJson('made'),
})

export const READ_SPACE_SESSION = prepared(
  'read_space_session',
  `SELECT ${spaceSessionJson('x')} AS json FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND x.session_id = $3`,
)

/** In the order in which they were given. Parameters: $1 project, $2 space, $3 created_at and $4 session to begin after, $5 how many. */
export const LIST_SPACE_SESSIONS = prepared(
  'list_space_sessions',
  `SELECT ${spaceSessionJson('x')} AS json, ${timestampText('x.created_at')} AS created_at, x.session_id AS id FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND (x.created_at, x.session_id) > ($3::timestamptz, $4::uuid)
ORDER BY x.created_at, x.session_id LIMIT $5`,
)

/** Parameters: $1 project, $2 space. Row: json, if there is such a space. */
export const READ_POLICY = prepared(
  'read_space_policy',
  `SELECT (coalesce(p.policy, '{}') || jsonb_build_object('mode', coalesce(p.mode, 'suggest')))::text AS json
FROM learning_spaces l LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = l.id
WHERE l.project_id = $1 AND l.id = $2`,
)

export const SET_POLICY = storedFunctionIn('learning/sessions/set_space_policy.sql', {
  consumer: LEARNING_CONSUMER,
})
