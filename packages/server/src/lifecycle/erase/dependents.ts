import type { Tenant } from '../../postgres/database.js'
import type { Counts, Dependents, Table } from '../table.js'
import { eraseRows } from './table_queries.js'

/** Rows of one table that one statement erases at most: some ten milliseconds' work. */
export const ROWS_AT_ONCE_MAX = 2_000

type EraseSlice = Dependents['eraseSome']

/** The tables whose rows go with those of one kind, in the order in which they go. */
export class DependentTables implements Dependents {
  private readonly slices: readonly EraseSlice[]

  constructor(tables: readonly Table[], kind: string) {
    this.slices = tables.map((table) => sliceOf(table, kind))
  }

  async eraseSome(tenant: Tenant, owner_ids: string[]) {
    const counts: Counts = {}
    let has_all = true
    for (const slice of this.slices) {
      const step = await slice(tenant, owner_ids)
      addCounts(counts, step.counts)
      has_all &&= step.has_all
    }
    return { counts, has_all }
  }
}

/** Adds to counts what others say. */
export function addCounts(counts: Counts, others: Counts): void {
  for (const [name, count] of Object.entries(others)) counts[name] = (counts[name] ?? 0) + count
}

function sliceOf(table: Table, kind: string): EraseSlice {
  const is_second = table.also_erased_with?.kind === kind
  const own = is_second ? table.also_erased_with?.eraseSomeOf : table.own?.eraseSomeOf
  if (typeof own === 'function') return own
  const of_owners = own ?? eraseRows(table, is_second ? `${kind}_id` : undefined).of_owners
  return async ({ database, project_id }, owner_ids) => {
    const [row] = await database.query(of_owners, [project_id, owner_ids, ROWS_AT_ONCE_MAX])
    const gone = Number(row!.gone)
    return { counts: table.counted ? { [table.name]: gone } : {}, has_all: gone < ROWS_AT_ONCE_MAX }
  }
}
