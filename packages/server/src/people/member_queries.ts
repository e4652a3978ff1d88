import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { roleText } from '../projects/project_queries.js'

const MEMBER_JSON = `json_build_object('id', m.id, 'project_id', m.project_id, 'email', m.email, 'role', ${roleText('m')},
  'is_from_group', m.invited_role IS NULL, 'has_signed_in', m.subject IS NOT NULL,
  'created_at', ${timestampText('m.created_at')})::text`

export const LIST_MEMBERS = prepared(
  'list_members',
  `SELECT ${MEMBER_JSON} AS json FROM members m WHERE m.project_id = $1 ORDER BY m.created_at, m.id`,
)

/** No row: the address is a member already. Parameters: $1 id, $2 project, $3 address, $4 role. */
export const INVITE_MEMBER = prepared(
  'invite_member',
  `WITH m AS (
  INSERT INTO members AS n (id, project_id, email, invited_role, created_at) VALUES ($1, $2, $3, $4, now())
  ON CONFLICT (project_id, email) DO NOTHING RETURNING n.*
)
SELECT ${MEMBER_JSON} AS json FROM m`,
)

/** Parameters: $1 project, $2 member, $3 role. */
export const CHANGE_MEMBER = prepared(
  'change_member',
  `WITH m AS (
  UPDATE members AS c SET invited_role = $3 WHERE c.project_id = $1 AND c.id = $2 RETURNING c.*
)
SELECT ${MEMBER_JSON} AS json FROM m`,
)

/** Parameters: $1 project, $2 member. Rows: email. */
export const REMOVE_MEMBER = prepared(
  'remove_member',
  'DELETE FROM members AS m WHERE m.project_id = $1 AND m.id = $2 RETURNING m.email',
)

export const REVOKE_KEYS_OF_MEMBER = prepared(
  'revoke_keys_of_member',
  `UPDATE api_keys AS k SET revoked_at = now()
WHERE k.project_id = $1 AND k.member_id = $2 AND k.revoked_at IS NULL RETURNING k.id`,
)

const ADMINS = `SELECT m.id FROM members m WHERE m.project_id = $1 AND m.subject IS NOT NULL AND ${roleText('m')} = 'admin'`

/** Administrators of the project who have signed in. Parameters: $1 project. Rows: id. */
export const FIND_ADMINS = prepared('find_admins_of_project', ADMINS)

/** The same, and keeps others from changing them before the transaction ends. */
export const LOCK_ADMINS = prepared('lock_admins_of_project', `${ADMINS} ORDER BY m.id FOR UPDATE`)

const TOKEN_JSON = `json_build_object('id', k.id, 'project_id', k.project_id, 'name', k.name, 'scopes', k.scopes, 'masked', k.masked,
  'created_at', ${timestampText('k.created_at')}, 'expires_at', ${timestampText('k.expires_at')}, 'revoked_at', NULL)::text`

/** Those that are valid. Parameters: $1 project, $2 member. */
export const LIST_PERSONAL_TOKENS = prepared(
  'list_personal_tokens',
  `SELECT ${TOKEN_JSON} AS json FROM api_keys k
WHERE k.project_id = $1 AND k.member_id = $2 AND k.origin = 'personal' AND k.revoked_at IS NULL AND k.expires_at > now()
ORDER BY k.created_at, k.id`,
)

/** A row if it is the member's. Parameters: $1 project, $2 member, $3 id. */
export const FIND_PERSONAL_TOKEN = prepared(
  'find_personal_token',
  `SELECT k.id FROM api_keys k
WHERE k.project_id = $1 AND k.member_id = $2 AND k.id = $3 AND k.origin = 'personal'`,
)
