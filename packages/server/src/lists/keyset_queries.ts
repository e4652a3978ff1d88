import type { Sql } from 'sql-template-tag'
import { PAGE_LIMIT_MAX } from '../limits.js'
import type { Parameter } from '../postgres/database.js'
import { composedOnce, planned, type Statement } from '../postgres/statement.js'
import { timestampText } from './resource_json.js'

/** Where a page of a list ordered by (created_at, id) begins, how long it is, and its direction. */
export interface ListPosition {
  time_desc: boolean
  limit: number
  /** The last row of the previous page; the page has the rows after it. It need not exist any more. */
  after: { created_at: string; id: string } | undefined
}

/** A statement composed for its parameters, ready to run. Rows: json, created_at, id; one more than `limit`. */
export interface ListStatement {
  statement: Statement
  parameters: Parameter[]
}

/**
 * A constant larger than any page. The planner does not know the value of `LIMIT $n` and assumes a tenth of the
 * table; this constant tells it that the page is short and that walking its index in order is best.
 */
export const PAGE_ROWS_MAX = PAGE_LIMIT_MAX + 1

/** The keywords for each direction. */
export interface Direction {
  name: 'asc' | 'desc'
  order: 'ASC' | 'DESC'
  /** The comparison of a row after a position with that position. */
  behind: '>' | '<'
}

const ASCENDING: Direction = { name: 'asc', order: 'ASC', behind: '>' }
const DESCENDING: Direction = { name: 'desc', order: 'DESC', behind: '<' }

export function directionOf(position: ListPosition): Direction {
  return position.time_desc ? DESCENDING : ASCENDING
}

/** Before everything: the first page is a page after this, so it is the same statement. */
const BEFORE_ALL = {
  asc: { created_at: '-infinity', id: '00000000-0000-0000-0000-000000000000' },
  desc: { created_at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' },
}

/** The parameters of every list: $1 project, $2 created_at and $3 id to start after, $4 rows. */
export function listParameters(project_id: string, position: ListPosition): Parameter[] {
  const after = position.after ?? BEFORE_ALL[directionOf(position).name]
  return [project_id, after.created_at, after.id, position.limit + 1]
}

/**
 * The statement for a page of a table's rows that satisfy `condition`, for which there is an index in the order of
 * (created_at, id). The row comparison lets PostgreSQL start in the index at the position instead of counting up to
 * it. Its plan is the same for all values and sizes, so it is planned once per connection.
 */
export function listStatement(parts: {
  name: string
  table: string
  condition?: string
  json: string
  /** Joined individually to each row, which is `t`: see `beside`. */
  join?: string
  direction: Direction
}): Statement {
  const { name, table, condition, json, join, direction } = parts
  const { order, behind } = direction
  return composedOnce(
    `${name}_${direction.name}`,
    () => `
SELECT ${json} AS json, ${timestampText('t.created_at')} AS created_at, t.id
FROM (
  SELECT t.* FROM ${table} t
  WHERE t.project_id = $1 ${condition ? `AND ${condition}` : ''} AND (t.created_at, t.id) ${behind} ($2::timestamptz, $3::uuid)
  ORDER BY t.created_at ${order}, t.id ${order}
  LIMIT ${PAGE_ROWS_MAX}
) t ${join ?? ''}
ORDER BY t.created_at ${order}, t.id ${order}
LIMIT $4`,
  )
}

/**
 * Joins the result of one look-up by key, row by row. OFFSET 0 keeps the planner from other joins, such as hashing
 * the whole table, when it misjudges the number of rows.
 */
export function beside(alias: string, lookUp: string): string {
  return `CROSS JOIN LATERAL (${lookUp} OFFSET 0) ${alias}`
}

/** A statement composed for its parameters, and planned for them. */
export function composed(name: string, query: Sql): ListStatement {
  return { statement: planned(name, query.text), parameters: query.values as Parameter[] }
}
