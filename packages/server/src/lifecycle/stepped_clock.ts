import type { Database } from '../postgres/database.js'
import { endOverdue, findOverdue, type Waiting } from './stepped_clock_queries.js'
import type { HandledTable, Table } from './table.js'

/*
 * The database's clock may be set back, by minutes or days. What was to wait for seconds until a time by the old clock
 * would wait until the new one has reached it. But each table says how long its rows wait at most: one that is to wait
 * longer was written by another clock, and its time has come. A clock that is set forward ends waits early, which costs
 * a repetition.
 */

export function tablesThatWait(tables: ReadonlyArray<Table | HandledTable>): Waiting[] {
  return tables.filter((table): table is Waiting => table.waits !== undefined)
}

/** Ends all waits that a clock which was set back has made too long. */
export async function mendAfterClock(
  database: Database,
  tables: ReadonlyArray<Table | HandledTable>,
): Promise<void> {
  for (const table of tablesThatWait(tables))
    for (const { project_id } of await database.query(findOverdue(table), []))
      await database.query(endOverdue(table), [project_id!])
}
