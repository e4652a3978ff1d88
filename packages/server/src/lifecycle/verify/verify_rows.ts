import type { Database } from '../../postgres/database.js'
import type { Table } from '../table.js'
import { type CheckedPiece, readFindings } from './check.js'
import { verifyPiece } from './verify_row_queries.js'

/** Bounds of a piece: what one statement reads, how long its snapshot lasts, and how often progress is seen. */
const ROWS_AT_ONCE = 1_000

/** Reads all rows of a table, in the order of its key, and holds them against what the table says of itself. */
export async function* verifyRows(
  database: Database,
  project_id: string,
  table: Table,
  tables: readonly Table[],
): AsyncGenerator<CheckedPiece> {
  const statement = verifyPiece(table, tables)
  const at_once = table.verified_at_once ?? ROWS_AT_ONCE
  for (let after: (string | null)[] = table.key.map(() => null); ; ) {
    const { counted, findings } = readFindings(
      await database.query(statement, [project_id, at_once, ...after]),
    )
    const count = Number(counted.count)
    yield { rows: Number(counted.rows), counts: table.is_derived ? {} : { [table.name]: count }, findings }
    if (count < at_once) return
    after = JSON.parse(String(counted.last)) as string[]
  }
}
