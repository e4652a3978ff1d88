import type { Queryable } from '../database/database.js'
import type { ListPosition } from '../database/queries/keyset.js'
import { COUNT_RESOURCES, FIND_USER, listUsers } from '../database/queries/users.js'
import { notFound } from '../errors.js'
import type { Listed } from './listed.js'

/** A page of users, one more than `limit` if there are more. */
export async function findUsers(
  database: Queryable,
  project_id: string,
  position: ListPosition,
): Promise<Listed[]> {
  const { statement, parameters } = listUsers(project_id, position)
  return (await database.query(statement, parameters)) as unknown as Listed[]
}

/** How many sessions and learning spaces a user has. @throws AnnalsError user_not_found */
export async function countResources(
  database: Queryable,
  project_id: string,
  identifier: string,
): Promise<{ sessions: number; learning_spaces: number }> {
  const [user] = await database.query(FIND_USER, [project_id, identifier])
  if (!user) throw notFound('user')
  const [row] = await database.query(COUNT_RESOURCES, [project_id, user.id!])
  return { sessions: Number(row!.sessions), learning_spaces: Number(row!.learning_spaces) }
}

/**
 * The user that a list is filtered by: undefined when it is not, `nobody` when no user has the identifier.
 */
export async function findOwner(
  database: Queryable,
  filter: { project_id: string; user?: string | undefined },
): Promise<{ id: string } | undefined | 'nobody'> {
  if (filter.user === undefined) return undefined
  const [row] = await database.query(FIND_USER, [filter.project_id, filter.user])
  return row ? { id: row.id! } : 'nobody'
}
