import sql from 'sql-template-tag'
import { prepared } from '../statement.js'
import { type ListPosition, type ListStatement, listPage } from './keyset.js'
import { mergedJson } from './merged_json.js'
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
  SELECT $1, $6::text, $7::text, a.id, now(), a.json FROM answer a WHERE $6::text IS NOT NULL
)
SELECT json FROM answer`,
)

/** Parameters: $1 project, $2 id. */
export const READ_LEARNING_SPACE = prepared(
  'read_learning_space',
  `SELECT ${learningSpaceJson('l')} AS json FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2`,
)

/**
 * Merges into meta, unless the result takes more than the bytes allowed. The row is locked before it is read, so
 * that two at once lose nothing. Rows: the space after the merge, null where it was not stored.
 * Parameters: $1 project, $2 id, $3 the body as JSON, $4 bytes allowed.
 */
export const MERGE_META = prepared(
  'merge_learning_space_meta',
  `
WITH merged AS MATERIALIZED (
  SELECT l.id, ${mergedJson('l.meta', "($3::jsonb -> 'meta')")} AS meta
  FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2 FOR UPDATE
), stored AS (
  UPDATE learning_spaces AS l SET meta = m.meta, updated_at = greatest(now(), l.updated_at) FROM merged m
  WHERE l.project_id = $1 AND l.id = m.id AND octet_length(m.meta::text) <= $4
  RETURNING l.*
)
SELECT (SELECT ${learningSpaceJson('t')} FROM stored t) AS json FROM merged`,
)

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
