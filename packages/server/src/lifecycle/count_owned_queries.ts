import { prepared, type Statement } from '../postgres/statement.js'
import { castOf, columnText } from './columns.js'
import { orderOf, ownerColumn, type Table } from './table.js'

/** Rows that one statement counts at most. */
export const COUNTED_AT_ONCE_MAX = 10_000

/**
 * Counts a bounded number of rows. Row: how many there are, and where the last of them stands; none where there are
 * none. Parameters: $1 project, $2 user, and from $3 on the position to begin behind.
 */
export function countSome(table: Table, is_next: boolean): Statement {
  const { name, columns } = table
  const order = orderOf(table)
  const position = order.join(', ')
  const after = order.map((column, index) => `$${index + 3}::${castOf(columns[column]!)}`)
  const is_behind = is_next ? `AND (${position}) > (${after.join(', ')})` : ''
  return prepared(
    `count_owned_${name}${is_next ? '_next' : ''}`,
    `
SELECT n.found, ${order.map((column, index) => `${columnText(column, columns[column]!, 'n')} AS position_${index}`).join(', ')}
FROM (
  SELECT t.*, row_number() OVER (ORDER BY ${position}) AS found
  FROM (
    SELECT ${position} FROM ${name}
    WHERE project_id = $1 AND ${ownerColumn(table)} = $2 ${is_behind}
    ORDER BY ${position} LIMIT ${COUNTED_AT_ONCE_MAX}
  ) t
) n
ORDER BY n.found DESC LIMIT 1`,
  )
}
