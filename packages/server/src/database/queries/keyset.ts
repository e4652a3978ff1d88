import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Parameter } from '../database.js'
import { planned, type Statement } from '../statement.js'
import { timestampText } from './resource_json.js'

/** Where a page of a list in order of (created_at, id) begins, how long it is, and which way it goes. */
export interface ListPosition {
  time_desc: boolean
  limit: number
  /** The last row of the page before: rows strictly behind it follow. It need not exist any longer. */
  after: { created_at: string; id: string } | undefined
}

/** A statement composed for its parameters, ready to run. Rows: json, created_at, id; one more than `limit`. */
export interface ListStatement {
  statement: Statement
  parameters: Parameter[]
}

/** Tables that are listed by time; each has an index on (project_id, created_at, id). */
export type ListedTable = 'sessions' | 'learning_spaces' | 'users'

/**
 * Composes a page. Conditions name the table by the alias `t`; the row comparison is what lets PostgreSQL
 * enter the index at the position instead of counting up to it. The page is cut in the inner select, so that
 * only its own rows are joined and written as JSON.
 */
export function listPage(parts: {
  name: string
  table: ListedTable
  conditions: Sql[]
  json: string
  join?: Sql
  position: ListPosition
}): ListStatement {
  const { position } = parts
  const direction = raw(position.time_desc ? 'DESC' : 'ASC')
  const after = position.after
    ? sql`AND (t.created_at, t.id) ${raw(position.time_desc ? '<' : '>')} (${position.after.created_at}::timestamptz, ${position.after.id}::uuid)`
    : empty
  const query = sql`
SELECT ${raw(parts.json)} AS json, ${raw(timestampText('t.created_at'))} AS created_at, t.id
FROM (
  SELECT t.* FROM ${raw(parts.table)} t
  WHERE ${join(parts.conditions, ' AND ')} ${after}
  ORDER BY t.created_at ${direction}, t.id ${direction}
  LIMIT ${position.limit + 1}
) t ${parts.join ?? empty}
ORDER BY t.created_at ${direction}, t.id ${direction}`
  return composed(parts.name, query)
}

/** A statement that was composed for its parameters. */
export function composed(name: string, query: Sql): ListStatement {
  return { statement: planned(name, query.text), parameters: query.values as Parameter[] }
}
