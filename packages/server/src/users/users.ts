import { notFound } from '@annals/kits/errors.js'
import { type Counts, orderOf, type Table } from '@annals/kits/lifecycle/table.js'
import type { Listed, ListPosition } from '@annals/kits/lists/listed.js'
import { readList } from '@annals/kits/lists/read_list.js'
import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { COUNTED_AT_ONCE_MAX, countSome, FIND_USER, listUsers } from './user_queries.js'

export function findUsers(tenant: Tenant, position: ListPosition): Promise<Listed[]> {
  return readList(tenant, listUsers(tenant.project_id, position))
}

/** The tables that count as a user's resources, those that refer to others first. */
export function countedOfUser(tables: readonly Table[]): Table[] {
  return tables.filter(({ counted, erased_with }) => counted && erased_with === 'user').toReversed()
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
  const counts: Counts = {}
  for (const table of tables) {
    counts[table.name] = 0
    let after: string[] = []
    for (let found = COUNTED_AT_ONCE_MAX; found === COUNTED_AT_ONCE_MAX; counts[table.name]! += found) {
      const statement = countSome(table, after.length > 0)
      const [last] = await database.query(statement, [project_id, user.id!, ...after])
      found = Number(last?.found ?? 0)
      if (last) after = orderOf(table).map((_, index) => last[`position_${index}`]!)
    }
  }
  return counts
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
