import sql from 'sql-template-tag'
import { prepared } from '../statement.js'
import { type ListPosition, type ListStatement, listPage } from './keyset.js'
import { learningSpaceJson } from './resource_json.js'
import { withUser } from './users.js'

/**
 * A learning space, its user if need be, and the memory of its idempotency key. No row: see withUser.
 * Parameters: $1 project, $2 id, $3 user identifier or null, $4 id for a new user, $5 the body as JSON,
 * $6 idempotency key or null, $7 request hash.
 */
export const CREATE_LEARNING_SPACE = prepared(
  'create_learning_space',
  `
WITH ${withUser({ project: '$1', identifier: '$3', new_id: '$4' })}, made AS (
  INSERT INTO learning_spaces AS l (project_id, id, user_id, meta, created_at, updated_at)
  SELECT $1, $2::uuid, o.id, coalesce(nullif($5::jsonb -> 'meta', 'null'), '{}'), now(), now() FROM owner o
  RETURNING l.*
), answer AS (
  SELECT m.project_id, m.id, ${learningSpaceJson('m')} AS json FROM made m
), remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
  SELECT a.project_id, $6::text, $7::text, a.id, now(), a.json FROM answer a WHERE $6::text IS NOT NULL
)
SELECT json FROM answer`,
)

/** Parameters: $1 project, $2 id. */
export const READ_LEARNING_SPACE = prepared(
  'read_learning_space',
  `SELECT ${learningSpaceJson('l')} AS json FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2`,
)

/** Parameters: $1 project, $2 id. Also forgets the answers that speak of it, in the same transaction. */
export const DELETE_LEARNING_SPACE = [
  prepared(
    'delete_learning_space',
    'DELETE FROM learning_spaces WHERE project_id = $1 AND id = $2 RETURNING id',
  ),
  prepared(
    'delete_learning_space_keys',
    'DELETE FROM idempotency_keys WHERE project_id = $1 AND owner_id = $2',
  ),
] as const

/**
 * Merges into meta: a null deletes its key. One statement on a locked row, so that two at once lose nothing.
 * Parameters: $1 project, $2 id, $3 the body as JSON.
 */
export const PATCH_LEARNING_SPACE = prepared(
  'patch_learning_space',
  `
UPDATE learning_spaces AS l
SET meta = ${mergedJson('l.meta', "($3::jsonb -> 'meta')")}, updated_at = greatest(now(), l.updated_at)
WHERE l.project_id = $1 AND l.id = $2
RETURNING ${learningSpaceJson('l')} AS json, octet_length(l.meta::text) AS bytes`,
)

/**
 * The top level of `base` overlaid with `change`, keys that `change` sets to null left out. What was null in
 * `base` before stays: only a null that is sent deletes.
 */
export function mergedJson(base: string, change: string): string {
  return `(${base} || ${change}) - ARRAY(SELECT c.key FROM jsonb_each(${change}) AS c WHERE c.value = 'null'::jsonb)`
}

export interface LearningSpaceFilter {
  project_id: string
  user_id?: string | undefined
  /** A JSON object as text: only spaces whose meta contains it. */
  meta?: string | undefined
}

/** A page of learning spaces. */
export function listLearningSpaces(filter: LearningSpaceFilter, position: ListPosition): ListStatement {
  const conditions = [sql`t.project_id = ${filter.project_id}`]
  if (filter.user_id !== undefined) conditions.push(sql`t.user_id = ${filter.user_id}`)
  if (filter.meta !== undefined) conditions.push(sql`t.meta @> ${filter.meta}::jsonb`)
  return listPage({
    name: 'list_learning_spaces',
    table: 'learning_spaces',
    conditions,
    json: learningSpaceJson('t'),
    position,
  })
}
