import {
  directionOf,
  type ListPosition,
  type ListStatement,
  listParameters,
  listStatement,
} from '../lists/keyset_queries.js'
import { userJson } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'

/**
 * Steps of a stored function that set `owner`: the user with the identifier in `p_user`, created under the id
 * `p_new_user` if new, or null if `p_user` is null. They end the function with null if somebody erases the user
 * meanwhile; the caller then calls it again.
 */
export const FIND_OR_CREATE_OWNER = `
  IF p_user IS NOT NULL THEN
    SELECT u.id INTO owner FROM users u WHERE u.project_id = p_project AND u.identifier = p_user;
    IF owner IS NULL THEN
      INSERT INTO users AS u (project_id, id, identifier, created_at, updated_at)
      VALUES (p_project, p_new_user, p_user, now(), now())
      ON CONFLICT (project_id, identifier) DO NOTHING;
      SELECT u.id INTO owner FROM users u WHERE u.project_id = p_project AND u.identifier = p_user;
      IF owner IS NULL THEN
        RETURN NULL;
      END IF;
    END IF;
  END IF;`

/** Parameters: $1 project, $2 identifier. */
export const FIND_USER = prepared(
  'find_user',
  'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2',
)

/**
 * Locks the user, so that no new session can name it until the transaction ends. Parameters: $1 project, $2
 * identifier.
 */
export const LOCK_USER = prepared(
  'lock_user',
  'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2 FOR UPDATE',
)

/** Parameters: $1 project, $2 id. */
export const DELETE_USER = prepared('delete_user', 'DELETE FROM users WHERE project_id = $1 AND id = $2')

/** Most rows that one statement counts. */
export const COUNTED_AT_ONCE_MAX = 10_000

/**
 * Counts what a user has, a bounded number of rows from a position on. Row: the count, and the last row counted; none
 * if there are none. Parameters of each: $1 project, $2 user, $3 created_at and $4 id to start after.
 */
export const COUNT_OWNED = {
  sessions: countOwned('sessions'),
  learning_spaces: countOwned('learning_spaces'),
} as const

function countOwned(table: string) {
  return prepared(
    `count_owned_${table}`,
    `
SELECT n.found, n.created_at::text AS created_at, n.id
FROM (
  SELECT t.created_at, t.id, row_number() OVER (ORDER BY t.created_at, t.id) AS found
  FROM (
    SELECT o.created_at, o.id FROM ${table} o
    WHERE o.project_id = $1 AND o.user_id = $2 AND (o.created_at, o.id) > ($3::timestamptz, $4::uuid)
    ORDER BY o.created_at, o.id
    LIMIT ${COUNTED_AT_ONCE_MAX}
  ) t
) n
ORDER BY n.found DESC LIMIT 1`,
  )
}

/**
 * The condition that a listed row belongs to the user with an identifier, of the project in $1; never true for an
 * unknown one.
 */
export function ofUser(identifier: string): string {
  return `t.user_id = (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = ${identifier}::text)`
}

/** A page of users. */
export function listUsers(project_id: string, position: ListPosition): ListStatement {
  return {
    statement: listStatement({
      name: 'list_users',
      table: 'users',
      json: userJson('t'),
      direction: directionOf(position),
    }),
    parameters: listParameters(project_id, position),
  }
}
