import { notFound } from '../errors.js'
import { countOwned } from '../lifecycle/count_owned.js'
import type { Counts, Table } from '../lifecycle/table.js'
import type { ListPosition } from '../lists/keyset_queries.js'
import { type Listed, readList } from '../lists/listed.js'
import type { Queryable, Tenant } from '../postgres/database.js'
import { FIND_USER, listUsers } from './user_queries.js'

/** A page of users, one more than `limit` if there are more. */
export function findUsers(tenant: Tenant, position: ListPosition): Promise<Listed[]> {
  return readList(tenant, listUsers(tenant.project_id, position))
}

/** How much a user has of each of these tables, by their names. @throws AnnalsError user_not_found */
export async function countResources(
  database: Queryable,
  tables: readonly Table[],
  project_id: string,
  identifier: string,
): Promise<Counts> {
  const [user] = await database.query(FIND_USER, [project_id, identifier])
  if (!user) throw notFound('user')
  return countOwned(database, tables, project_id, user.id!)
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
