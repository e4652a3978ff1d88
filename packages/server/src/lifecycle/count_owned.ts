import type { Queryable } from '../postgres/database.js'
import { COUNTED_AT_ONCE_MAX, countSome } from './count_owned_queries.js'
import { type Counts, orderOf, type Table } from './table.js'

/** The tables of which a user's resources are counted, those that refer to others first. */
export function countedOfUser(tables: readonly Table[]): Table[] {
  return tables.filter(({ counted, erased_with }) => counted && erased_with === 'user').toReversed()
}

export async function countOwned(
  database: Queryable,
  tables: readonly Table[],
  project_id: string,
  user_id: string,
): Promise<Counts> {
  const counts: Counts = {}
  for (const table of tables) {
    counts[table.name] = 0
    let after: string[] | undefined
    for (let found = COUNTED_AT_ONCE_MAX; found === COUNTED_AT_ONCE_MAX; counts[table.name]! += found) {
      const [last] = await database.query(countSome(table, after !== undefined), [
        project_id,
        user_id,
        ...(after ?? []),
      ])
      found = Number(last?.found ?? 0)
      if (last) after = orderOf(table).map((_, index) => last[`position_${index}`]!)
    }
  }
  return counts
}
