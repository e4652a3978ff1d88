import type { Sql } from 'sql-template-tag'
import { PAGE_LIMIT_MAX } from '../limits.js'
import { aggregated } from '../postgres/column_aggregates.js'
import type { Parameter } from '../postgres/database.js'
import { composedOnce, planned } from '../postgres/statement.js'
import type { Composed, Listing, ListStatement } from './listed.js'

/** Where a page of a list ordered by (created_at, id) begins, how long it is, and its direction. */
export interface ListPosition {
  time_desc: boolean
  limit: number
  /** The last row of the previous page; the page has the rows after it. It need not exist any more. */
  after: { created_at: string; id: string } | undefined
}

/**
 * A constant larger than any page. The planner does not know the value of `LIMIT $n` and assumes a tenth of the
 * table; this constant tells it that the page is short and that walking its index in order is best.
 */
export const PAGE_ROWS_MAX = PAGE_LIMIT_MAX + 1

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
export const BEFORE_ALL = {
  asc: { created_at: '-infinity', id: '00000000-0000-0000-0000-000000000000' },
  desc: { created_at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' },
}

/** The parameters of every list: $1 project, $2 created_at and $3 id to start after, $4 rows. */
export function listParameters(project_id: string, position: ListPosition): Parameter[] {
  const after = position.after ?? BEFORE_ALL[directionOf(position).name]
  return [project_id, after.created_at, after.id, position.limit + 1]
}

/**
 * A page of a table's rows that satisfy `condition`, with parameters from $5 on, for which there is an index in the order
 * of (created_at, id). The row comparison lets PostgreSQL start in the index at the position instead of counting up to
 * it. Its plan is the same for all values and sizes, so it is planned once per connection.
 */
export function listStatement(
  parts: { name: string; table: string; condition?: string; listing: Listing },
  project_id: string,
  position: ListPosition,
  ...more: Parameter[]
): ListStatement {
  const { name, table, condition, listing } = parts
  const direction = directionOf(position)
  const { order, behind } = direction
  const statement = composedOnce(
    `${name}_${direction.name}`,
    () => `
SELECT ${aggregated(listing.columns)}
FROM (
  SELECT t.* FROM (
    SELECT t.* FROM ${table} t
    WHERE t.project_id = $1 ${condition ? `AND ${condition}` : ''} AND (t.created_at, t.id) ${behind} ($2::timestamptz, $3::uuid)
    ORDER BY t.created_at ${order}, t.id ${order}
    LIMIT ${PAGE_ROWS_MAX}
  ) t
  ORDER BY t.created_at ${order}, t.id ${order}
  LIMIT $4
) t`,
  )
  return { statement, parameters: [...listParameters(project_id, position), ...more], listing }
}

/**
 * Joins the result of one look-up by key, row by row. OFFSET 0 keeps the planner from other joins, such as hashing
 * the whole table, when it misjudges the number of rows.
 */
export function beside(alias: string, lookUp: string): string {
  return `CROSS JOIN LATERAL (${lookUp} OFFSET 0) ${alias}`
}

/** A statement composed for its parameters, and planned for them. */
export function composed(name: string, query: Sql): Composed {
  return { statement: planned(name, query.text), parameters: query.values as Parameter[] }
}
