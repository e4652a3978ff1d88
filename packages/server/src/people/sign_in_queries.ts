import { prepared } from '@annals/kits/postgres/statement.js'
import { roleText } from '../projects/project_queries.js'

/** How often the issuer is asked again for a person's roles. */
export const CHECK_S = 120

/**
 * Parameters: $1 id for a new one, $2 issuer, $3 subject, $4 address, $5 whether an owner, $6 refresh token, encrypted, or
 * null, $7 when the issuer is asked again, or null. Rows: id.
 */
export const KEEP_PERSON = prepared(
  'keep_person',
  `INSERT INTO people AS p (id, issuer, subject, email, is_owner, refresh_token, check_after)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email, is_owner = excluded.is_owner,
  refresh_token = excluded.refresh_token, check_after = excluded.check_after
RETURNING p.id`,
)

/** Invitations of an address become memberships. Parameters: $1 issuer, $2 subject, $3 address. */
export const TAKE_INVITATIONS = prepared(
  'take_invitations',
  `UPDATE members AS m SET issuer = $1, subject = $2
WHERE m.email = $3 AND m.subject IS NULL AND NOT EXISTS (
  SELECT FROM members o WHERE o.project_id = m.project_id AND o.issuer = $1 AND o.subject = $2)
RETURNING m.id`,
)

/** Parameters: $1 names or ids of projects. Rows: id, name. */
export const FIND_NAMED_PROJECTS = prepared(
  'find_projects_of_groups',
  'SELECT p.id, p.name FROM projects p WHERE p.name = ANY ($1::text[]) OR p.id::text = ANY ($1::text[])',
)

/**
 * Somebody else's address in the project stays theirs. Parameters: $1 id for a new one, $2 project, $3 issuer, $4 subject,
 * $5 address, $6 role, $7 seconds for which it holds.
 */
export const KEEP_GROUP_ROLE = prepared(
  'keep_group_role',
  `INSERT INTO members AS m (id, project_id, issuer, subject, email, group_role, group_until, created_at)
SELECT $1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, now() + make_interval(secs => $7::int), now()
WHERE NOT EXISTS (SELECT FROM members o WHERE o.project_id = $2 AND o.email = $5 AND (o.subject IS NULL OR o.issuer <> $3 OR o.subject <> $4))
ON CONFLICT (issuer, subject, project_id) DO UPDATE SET group_role = excluded.group_role, group_until = excluded.group_until`,
)

/** Parameters: $1 issuer, $2 subject, $3 projects in which the groups still give a role. */
export const END_GROUP_ROLES = prepared(
  'end_group_roles',
  `UPDATE members AS m SET group_role = NULL, group_until = NULL
WHERE m.issuer = $1 AND m.subject = $2 AND m.group_role IS NOT NULL AND m.project_id <> ALL ($3::uuid[])`,
)

/** Parameters: $1 issuer, $2 subject. */
export const REMOVE_MEMBERS_WITHOUT_ROLE = prepared(
  'remove_members_without_role',
  `DELETE FROM members AS m
WHERE m.issuer = $1 AND m.subject = $2 AND m.invited_role IS NULL AND m.group_role IS NULL`,
)

/** Where somebody may do something. Parameters: $1 issuer, $2 subject. Rows: id, project_id. */
export const FIND_MEMBERSHIPS = prepared(
  'find_memberships',
  `SELECT m.id, m.project_id FROM members m
WHERE m.issuer = $1 AND m.subject = $2 AND ${roleText('m')} IS NOT NULL ORDER BY m.created_at, m.id`,
)

/** Some about whom the issuer is to be asked: they have something open. Rows: id. */
export const FIND_PEOPLE_TO_CHECK = prepared(
  'find_people_to_check',
  `SELECT p.id FROM people p WHERE p.check_after < now() AND (
  EXISTS (SELECT FROM admin_sessions a WHERE a.person_id = p.id AND a.expires_at > now())
  OR EXISTS (SELECT FROM members m JOIN api_keys k ON k.project_id = m.project_id AND k.member_id = m.id
    WHERE m.issuer = p.issuer AND m.subject = p.subject AND k.revoked_at IS NULL AND k.expires_at > now()))
ORDER BY p.check_after LIMIT 10`,
)

/** No row: another node does it. Parameters: $1 id. Rows: issuer, subject, email, refresh_token. */
export const BEGIN_CHECK = prepared(
  'begin_check_of_person',
  `WITH checked AS (
  UPDATE people AS p SET check_after = now() + interval '${CHECK_S} s' WHERE p.id = $1 AND p.check_after < now() RETURNING p.*
)
SELECT c.issuer, c.subject, c.email, convert_from(c.refresh_token, 'UTF8') AS refresh_token FROM checked c`,
)

/** The account is gone. Parameters: $1 id. */
export const FORGET_PERSON = prepared('forget_person', 'DELETE FROM people AS p WHERE p.id = $1')

/** Sessions and personal tokens. Parameters: $1 issuer, $2 subject. */
export const END_KEYS_OF_PERSON = prepared(
  'end_keys_of_person',
  `UPDATE api_keys AS k SET revoked_at = now() FROM members m
WHERE m.project_id = k.project_id AND m.id = k.member_id AND m.issuer = $1 AND m.subject = $2 AND k.revoked_at IS NULL`,
)

/** Parameters: $1 id. */
export const END_OWNER_SESSIONS = prepared(
  'end_owner_sessions',
  'DELETE FROM admin_sessions AS a WHERE a.person_id = $1',
)
