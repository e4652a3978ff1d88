import type { Queryable } from '../../postgres/database.js'
import type { Counts, Dependents, Table } from '../table.js'
import { eraseRows } from './table_queries.js'

/** Rows of one table that one statement erases at most: some ten milliseconds' work. */
export const ROWS_AT_ONCE_MAX = 2_000

/** The tables whose rows go with those of one kind, in the order in which they go. */
export class DependentTables implements Dependents {
  private readonly tables: ReadonlyArray<{
    name: string
    is_counted: boolean
    erasure: ReturnType<typeof eraseRows>
    own: Table['own']
  }>

  constructor(tables: readonly Table[]) {
    this.tables = tables.map((table) => ({
      name: table.name,
      is_counted: table.counted,
      erasure: eraseRows(table),
      own: table.own,
    }))
  }

  async eraseSome(connection: Queryable, project_id: string, owner_ids: string[]) {
    const counts: Counts = {}
    let has_all = true
    for (const { name, is_counted, erasure, own } of this.tables) {
      if (own?.eraseSomeOf) {
        const step = await own.eraseSomeOf(connection, project_id, owner_ids)
        addCounts(counts, step.counts)
        has_all &&= step.has_all
        continue
      }
      const [row] = await connection.query(erasure.of_owners, [project_id, owner_ids, ROWS_AT_ONCE_MAX])
      const gone = Number(row!.gone)
      if (is_counted) counts[name] = gone
      if (gone === ROWS_AT_ONCE_MAX) has_all = false
    }
    return { counts, has_all }
  }

  async eraseAll(database: Queryable, project_id: string, owner_id: string, onSlice: () => void = () => {}) {
    const counts: Counts = {}
    for (;;) {
      const step = await this.eraseSome(database, project_id, [owner_id])
      addCounts(counts, step.counts)
      if (step.has_all) return counts
      onSlice()
    }
  }
}

/** Adds to counts what others say. */
export function addCounts(counts: Counts, others: Counts): void {
  for (const [name, count] of Object.entries(others)) counts[name] = (counts[name] ?? 0) + count
}
