import type { Database } from '../postgres/database.js'
import { askingEveryProject, onTables, prepared, type Statement } from '../postgres/statement.js'
import type { HandledTable, Table, Waits } from './table.js'

/*
 * The database's clock may be set back, by minutes or days. What was to wait for seconds until a time by the old clock
 * would wait until the new one has reached it. But each table says how long its rows wait at most: one that is to wait
 * longer was written by another clock, and its time has come. A clock that is set forward ends waits early, which costs
 * a repetition.
 */

export function tablesThatWait(tables: ReadonlyArray<Table | HandledTable>): Waiting[] {
  return tables.flatMap(({ name, waits = [] }) =>
    [waits]
      .flat()
      .map((one, index) => ({ name, id: index === 0 ? name : `${name}_${one.column}`, waits: one })),
  )
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

interface Waiting {
  readonly name: string
  readonly id: string
  readonly waits: Waits
}

/** SQL: whether a row `t` waits for longer than any may. */
function isOverdue({ column, at_most }: Waits): string {
  return at_most
    .map(({ s, which }) => `t.${column} > now() + interval '${s} s'${which ? ` AND ${which}` : ''}`)
    .map((condition) => `(${condition})`)
    .join(' OR ')
}

/** Rows: project_id, of those with such rows. */
export function findOverdue({ name, id, waits }: Waiting): Statement {
  return askingEveryProject(
    prepared,
    `find_overdue_${id}`,
    `SELECT t.project_id FROM {${name}} t WHERE ${isOverdue(waits)} GROUP BY t.project_id`,
  )
}

/** Ends their waits. Parameters: $1 project. */
export function endOverdue({ name, id, waits }: Waiting): Statement {
  return prepared(
    `end_overdue_${id}`,
    `UPDATE ${name} AS t SET ${waits.column} = now()${waits.also ? `, ${waits.also}` : ''}
WHERE t.project_id = $1 AND (${onTables(isOverdue(waits))})`,
  )
}
