import { notFound } from '../errors.js'
import type { ListPosition } from '../lists/keyset_queries.js'
import type { Listed } from '../lists/listed.js'
import type { Queryable } from '../postgres/database.js'
import { COUNT_OWNED, COUNTED_AT_ONCE_MAX, FIND_USER, listUsers } from './user_queries.js'

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
  return {
    sessions: await countOwned(database, 'sessions', project_id, user.id!),
    learning_spaces: await countOwned(database, 'learning_spaces', project_id, user.id!),
  }
}

async function countOwned(
  database: Queryable,
  what: keyof typeof COUNT_OWNED,
  project_id: string,
  user_id: string,
): Promise<number> {
  let count = 0
  let after = ['-infinity', '00000000-0000-0000-0000-000000000000']
  for (let found = COUNTED_AT_ONCE_MAX; found === COUNTED_AT_ONCE_MAX; count += found) {
    const [last] = await database.query(COUNT_OWNED[what], [project_id, user_id, ...after])
    found = Number(last?.found ?? 0)
    if (last) after = [last.created_at!, last.id!]
  }
  return count
}

/** The user that a list is filtered by: undefined without a filter, `nobody` if no user has the identifier. */
export async function findOwner(
  database: Queryable,
  filter: { project_id: string; user?: string | undefined },
): Promise<{ id: string } | undefined | 'nobody'> {
  if (filter.user === undefined) return undefined
  const [row] = await database.query(FIND_USER, [filter.project_id, filter.user])
  return row ? { id: row.id! } : 'nobody'
}
