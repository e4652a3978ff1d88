import { CONSOLE_IDLE_HOURS_MAX, CONSOLE_SESSION_DAYS_MAX } from '@annals/kits/limits.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'

/** A project's settings, with their types. */
const SETTINGS = [
  ['retention_days', 'int'],
  ['rate_limit_per_second', 'int'],
  ['max_sessions', 'bigint'],
  ['max_bytes', 'bigint'],
  ['max_blob_bytes', 'bigint'],
  ['max_tails', 'bigint'],
  ['max_model_tokens_per_day', 'bigint'],
  ['auto_compact_tokens', 'bigint'],
  ['search', 'boolean'],
  ['proof', 'boolean'],
  ['mask_viewers', 'boolean'],
  ['audit_reads', 'text'],
  ['audit_reads_days', 'int'],
  ['outcomes', 'jsonb'],
  ['model', 'jsonb'],
] as const

const PROJECT_JSON = `json_build_object('id', p.id, 'name', p.name, 'created_at', ${timestampText('p.created_at')},
  ${SETTINGS.map(([name]) => `'${name}', p.${name}${name === 'model' ? " - 'key'" : ''}`).join(', ')})::text`

function nullableTimestampText(expression: string): string {
  return `CASE WHEN ${expression} IS NOT NULL THEN ${timestampText(expression)} END`
}

// The written row becomes JSON in a SELECT around it: Citus allows no function of times or JSON in RETURNING.

/** A token as it is shown, without its hash; its secret is not stored. */
const API_KEY_JSON = `json_build_object('id', k.id, 'project_id', k.project_id, 'name', k.name, 'scopes', k.scopes,
  'masked', k.masked,
  'created_at', ${timestampText('k.created_at')}, 'expires_at', ${nullableTimestampText('k.expires_at')},
  'revoked_at', ${nullableTimestampText('k.revoked_at')})::text`

/** No row: the name is taken. Parameters: $1 id, $2 name, $3 its settings as JSON. */
export const CREATE_PROJECT = prepared(
  'create_project',
  `WITH p AS (
  INSERT INTO projects AS n (id, name, created_at, ${SETTINGS.map(([name]) => name).join(', ')})
  VALUES ($1, $2, now(), ${SETTINGS.map(([name, type]) => `($3::jsonb ->> '${name}')::${type}`).join(', ')})
  ON CONFLICT (name) DO NOTHING RETURNING n.*
)
SELECT p.id, ${PROJECT_JSON} AS json FROM p`,
)

/** Changes what the settings name; null removes a setting. Parameters: $1 id, $2 settings as JSON. */
export const CHANGE_PROJECT = prepared(
  'change_project',
  `WITH p AS (
  UPDATE projects AS c SET
    ${SETTINGS.map(
      ([name, type]) =>
        `${name} = CASE WHEN $2::jsonb ? '${name}' THEN ($2::jsonb ->> '${name}')::${type} ELSE c.${name} END`,
    ).join(',\n    ')}
  WHERE c.id = $1 RETURNING c.*
)
SELECT ${PROJECT_JSON} AS json FROM p`,
)

export const FIND_PROJECTS_WITH_RETENTION = prepared(
  'find_projects_with_retention',
  'SELECT p.id, p.retention_days FROM projects p WHERE p.retention_days IS NOT NULL ORDER BY p.id',
)

export const LIST_PROJECTS = prepared(
  'list_projects',
  `SELECT p.id, p.name, ${PROJECT_JSON} AS json FROM projects p ORDER BY p.created_at, p.id`,
)

/** The first two projects: enough to tell the only one from several. */
export const FIND_ONLY_PROJECT = prepared(
  'find_only_project',
  'SELECT p.id, p.name FROM projects p ORDER BY p.created_at, p.id LIMIT 2',
)

export const PROJECT_EXISTS = prepared('project_exists', 'SELECT p.id FROM projects p WHERE p.id = $1')

export const READ_QUOTAS = prepared(
  'read_quotas',
  'SELECT p.rate_limit_per_second, p.max_sessions, p.max_bytes, p.max_blob_bytes, p.max_tails FROM projects p WHERE p.id = $1',
)

/** A project by its id (as text) or its name. Parameters: $1 either. */
export const FIND_PROJECT = prepared(
  'find_project',
  `SELECT p.id, p.name, ${PROJECT_JSON} AS json FROM projects p WHERE p.id::text = lower($1) OR p.name = $1
ORDER BY (p.name = $1) DESC LIMIT 1`,
)

/**
 * Parameters: $1 id, $2 project, $3 SHA-256 of the token, $4 name, $5 scopes, $6 origin, $7 expiry or null, $8 the key
 * on which it depends or null, $9 the member whose key it is or null, $10 whether it is masked.
 */
export const CREATE_API_KEY = prepared(
  'create_api_key',
  `WITH k AS (
  INSERT INTO api_keys AS n (id, project_id, token_hash, name, scopes, origin, created_at, expires_at, parent_id, member_id, masked)
  VALUES ($1, $2, $3, $4, $5, $6, now(), $7, $8, $9, $10) RETURNING n.*
)
SELECT ${API_KEY_JSON} AS json FROM k`,
)

/** Sign-in codes are not listed as keys. Parameters: $1 project. */
export const LIST_API_KEYS = prepared(
  'list_api_keys',
  `SELECT ${API_KEY_JSON} AS json FROM api_keys k
WHERE k.project_id = $1 AND k.origin <> 'sign_in_code' ORDER BY k.created_at, k.id`,
)

/** A key that is already revoked keeps its time. Parameters: $1 project, $2 id. */
export const REVOKE_API_KEY = prepared(
  'revoke_api_key',
  `WITH k AS (
  UPDATE api_keys AS r SET revoked_at = least(r.revoked_at, now()) WHERE r.project_id = $1 AND r.id = $2 RETURNING r.*
)
SELECT ${API_KEY_JSON} AS json FROM k`,
)

/**
 * Revokes the keys that the service created for a project by itself, except the one with the hash. Parameters: $1
 * project, $2 hash to keep.
 */
export const REVOKE_OTHER_OWN_API_KEYS = prepared(
  'revoke_other_own_api_keys',
  `UPDATE api_keys AS k SET revoked_at = now()
WHERE k.project_id = $1 AND k.origin IN ('first_start', 'environment') AND k.token_hash <> $2 AND k.revoked_at IS NULL RETURNING k.id`,
)

/** Makes a key that the service created valid again. Parameters: $1 project, $2 hash. Rows: those with the hash. */
export const RESTORE_OWN_API_KEY = prepared(
  'restore_own_api_key',
  'UPDATE api_keys AS k SET revoked_at = NULL WHERE k.project_id = $1 AND k.token_hash = $2 RETURNING k.id',
)

/** Whether a project has any key at all, revoked ones included. Parameters: $1 project. */
export const HAS_API_KEY = prepared(
  'has_api_key',
  'SELECT k.id FROM api_keys k WHERE k.project_id = $1 LIMIT 1',
)

/** The role that a member has now, null if none: the higher one of both, which the alphabet has first. */
export function roleText(member: string): string {
  return `least(${member}.invited_role, CASE WHEN ${member}.group_until > now() THEN ${member}.group_role END)`
}

/** Keys `k` with their projects `p` and, of those of people, their members `m`. All of them are on every machine of a cluster. */
export const KEYS_AND_OWNERS = `api_keys k JOIN projects p ON p.id = k.project_id
LEFT JOIN members m ON m.id = k.member_id AND m.project_id = k.project_id`

/** The columns of a grant, of KEYS_AND_OWNERS. */
export const API_KEY_COLUMNS = `k.id, k.project_id, encode(k.token_hash, 'hex') AS token_hash,
  array_to_string(k.scopes, ' ') AS scopes, floor(extract(epoch FROM k.expires_at) * 1000)::bigint AS expires_at_ms,
  p.rate_limit_per_second, p.max_sessions, p.max_bytes, p.max_blob_bytes, p.max_tails, p.consumers <> '{}' AS has_consumers, p.proof,
  k.origin = 'console' AND k.parent_id IS NULL AS is_in_console, k.member_id, ${roleText('m')} AS role, m.email,
  p.redaction::text AS redaction, k.masked, p.mask_viewers, p.audit_reads, p.outcomes::text AS outcomes`

/** A key of KEYS_AND_OWNERS is neither revoked nor expired, and neither is the one on which it depends; its member has a role. */
export const IS_LIVE_KEY = `k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
  AND (k.member_id IS NULL OR ${roleText('m')} IS NOT NULL)
  AND (k.parent_id IS NULL OR EXISTS (
    SELECT FROM api_keys a
    WHERE a.id = k.parent_id AND a.revoked_at IS NULL AND (a.expires_at IS NULL OR a.expires_at > now())))`

/**
 * The projects and rights of tokens that are valid now. Parameters: $1 SHA-256 of the tokens. The only statement that
 * starts from a token: all others start from a project.
 */
export const FIND_API_KEYS = prepared(
  'find_api_keys',
  `SELECT ${API_KEY_COLUMNS} FROM ${KEYS_AND_OWNERS}
WHERE k.token_hash = ANY ($1::bytea[]) AND ${IS_LIVE_KEY}`,
)

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

/** The end of an administrator's session that began at a time, if it is not used any more. */
const untilIdle = (began: string) =>
  `least(now() + interval '${CONSOLE_IDLE_HOURS_MAX} hours', ${began} + interval '${CONSOLE_SESSION_DAYS_MAX} days')`

/** Parameters: $1 id, $2 the person if it is an owner's, or null. */
export const BEGIN_ADMIN_SESSION = prepared(
  'begin_admin_session',
  `INSERT INTO admin_sessions (id, expires_at, person_id) VALUES ($1, ${untilIdle('now()')}, $2)`,
)

export const FORGET_EXPIRED_ADMIN_SESSIONS = prepared(
  'forget_expired_admin_sessions',
  'DELETE FROM admin_sessions AS a WHERE a.expires_at < now()',
)

/** A row if the session is open. Parameters: $1 id. */
export const FIND_ADMIN_SESSION = prepared(
  'find_admin_session',
  'SELECT a.id FROM admin_sessions a WHERE a.id = $1 AND a.expires_at > now()',
)

/** The same, and puts off its end. */
export const RENEW_ADMIN_SESSION = prepared(
  'renew_admin_session',
  `UPDATE admin_sessions AS a SET expires_at = ${untilIdle('a.created_at')}
WHERE a.id = $1 AND a.expires_at > now() RETURNING a.id`,
)

export const END_ADMIN_SESSION = prepared(
  'end_admin_session',
  'DELETE FROM admin_sessions AS a WHERE a.id = $1',
)
