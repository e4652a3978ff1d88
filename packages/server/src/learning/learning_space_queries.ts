import {
  directionOf,
  type ListPosition,
  type ListStatement,
  listParameters,
  listStatement,
} from '../lists/keyset_queries.js'
import { mergedJson } from '../lists/merged_json.js'
import { learningSpaceJson } from '../lists/resource_json.js'
import { insertTerms, moveTerms, termsStatement } from '../lists/term_queries.js'
import { prepared } from '../postgres/statement.js'
import { ofUser, withUser } from '../users/user_queries.js'

/**
 * Creates a learning space, its user if new, and its idempotency key. No row: see withUser. Parameters: $1 project,
 * $2 id, $3 user identifier or null, $4 id for a new user, $5 the body as JSON, $6 idempotency key or null, $7
 * request hash.
 */
export const CREATE_LEARNING_SPACE = prepared(
  'create_learning_space',
  `
WITH ${withUser({ project: '$1', identifier: '$3', new_id: '$4' })}, made AS (
  INSERT INTO learning_spaces AS l (project_id, id, user_id, meta, created_at, updated_at)
  SELECT $1, $2::uuid, o.id, coalesce(nullif($5::jsonb -> 'meta', 'null'), '{}'), now(), now() FROM owner o
  RETURNING l.*
), made_terms AS (${insertTerms('learning_spaces', '$1', 'made')}
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
 * Locks a learning space until the transaction ends, so that the next statement sees what the previous change wrote.
 * Parameters: $1 project, $2 id.
 */
export const LOCK_LEARNING_SPACE = prepared(
  'lock_learning_space',
  'SELECT l.id FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2 FOR UPDATE',
)

/**
 * Merges into the meta of a locked space, unless the result exceeds the bytes allowed. Rows: the merged space, null
 * if it was not stored. Parameters: $1 project, $2 id, $3 the body as JSON, $4 bytes allowed.
 */
export const MERGE_META = prepared(
  'merge_learning_space_meta',
  `
WITH merged AS MATERIALIZED (
  SELECT o.id, ${mergedJson('o.meta', "($3::jsonb -> 'meta')")} AS meta
  FROM learning_spaces o WHERE o.project_id = $1 AND o.id = $2
), fitting AS MATERIALIZED (
  SELECT m.id, m.meta FROM merged m WHERE octet_length(m.meta::text) <= $4
), ${moveTerms('learning_spaces', {
    project: '$1',
    id: '(SELECT f.id FROM fitting f)',
    document: '(SELECT f.meta FROM fitting f)',
  })}, stored AS (
  UPDATE learning_spaces AS l SET meta = f.meta, updated_at = greatest(now(), l.updated_at) FROM fitting f
  WHERE l.project_id = $1 AND l.id = f.id
  RETURNING l.*
)
SELECT (SELECT ${learningSpaceJson('t')} FROM stored t) AS json FROM merged`,
)

/** Which learning spaces a list shows. */
export interface LearningSpaceFilter {
  project_id: string
  /** A user's identifier. */
  user?: string | undefined
  /** A JSON object as text, not empty: only spaces whose meta contains it. */
  meta?: string | undefined
}

/** A page of learning spaces. */
export function listLearningSpaces(filter: LearningSpaceFilter, position: ListPosition): ListStatement {
  const json = learningSpaceJson('t')
  const direction = directionOf(position)
  const parameters = listParameters(filter.project_id, position)
  const table = 'learning_spaces'
  if (filter.meta !== undefined) {
    const statement = termsStatement({ name: 'list_learning_spaces', list: table, json, direction })
    return { statement, parameters: [...parameters, filter.meta, filter.user ?? null] }
  }
  if (filter.user !== undefined) {
    const parts = { name: 'list_learning_spaces_of_user', table, condition: ofUser('$5') }
    return {
      statement: listStatement({ ...parts, json, direction }),
      parameters: [...parameters, filter.user],
    }
  }
  return { statement: listStatement({ name: 'list_learning_spaces', table, json, direction }), parameters }
}
