import { composedOnce, prepared, type Statement } from '../postgres/statement.js'
import type { HandledTable, Table, Waits } from './table.js'

export type Waiting = (Table | HandledTable) & { readonly waits: Waits }

/** SQL: whether a row `t` waits for longer than any may. */
function isOverdue({ column, at_most }: Waits): string {
  return at_most
    .map(({ s, which }) => `t.${column} > now() + interval '${s} s'${which ? ` AND ${which}` : ''}`)
    .map((condition) => `(${condition})`)
    .join(' OR ')
}

/** Rows: project_id, of those with such rows. */
export function findOverdue({ name, waits }: Waiting): Statement {
  return composedOnce(
    `find_overdue_${name}`,
    () => `SELECT t.project_id FROM ${name} t WHERE ${isOverdue(waits)} GROUP BY t.project_id`,
  )
}

/** Ends their waits. Parameters: $1 project. */
export function endOverdue({ name, waits }: Waiting): Statement {
  return prepared(
    `end_overdue_${name}`,
    `UPDATE ${name} AS t SET ${waits.column} = now()${waits.also ? `, ${waits.also}` : ''}
WHERE t.project_id = $1 AND (${isOverdue(waits)})`,
  )
}
