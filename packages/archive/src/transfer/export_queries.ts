import { castOf, columnText, orderOf, ownerColumn, type Table } from '@annals/kits/lifecycle/table.js'
import type { Composed } from '@annals/kits/lists/listed.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { planned, prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { lineSql } from '../columns.js'
import { ownOf } from '../tables.js'

/**
 * Reads a project for an export. Each row's column `line` is the line of the export as PostgreSQL writes it: callers'
 * JSON goes from jsonb to the file as text, so no digit is lost.
 */

/** The lines of rows `t`: what each has, and what is joined for it. */
function linesOf(table: Table): { select: string; join: string } {
  const { kind, columns } = table
  const user = Object.keys(columns).find((name) => columns[name] === 'user?')
  const identifier = user === undefined ? 'NULL' : 'u.identifier'
  const {
    line,
    columns: further,
    join,
  } = ownOf(table).exported ?? { line: lineSql(kind, columns), columns: '', join: '' }
  return {
    select: `${further}${identifier} AS user, ${line} AS line`,
    join: `${join}${user === undefined ? '' : `\nLEFT JOIN users u ON u.project_id = $1 AND u.id = t.${user}`}`,
  }
}

/** A row by its id. Parameters: $1 project, $2 id. Row: id, user (the identifier), what the table exports, line. */
export function exportOne(table: Table): Statement {
  const { select, join } = linesOf(table)
  return planned(
    `export_one_of_${table.name}`,
    `SELECT t.id, ${select} FROM ${table.name} t ${join} WHERE t.project_id = $1 AND t.id = $2`,
  )
}

export interface OwnedPage {
  project_id: string
  /** Ids of what the rows are erased with; null: those that have no owner, or all where the project is it. */
  owner_ids: string[] | null
  /** The last row of the page before, of the only owner. */
  after: (string | null)[] | undefined
  limit: number
}

/**
 * A page of what some owners have, in their order and then in that of the table. Each one's rows are found by the
 * table's index. Rows: ord (of the owner, from 1), what the table exports, line, position_0, position_1, …
 */
export function exportOwned(table: Table, page: OwnedPage): Composed {
  const { select, join } = linesOf(table)
  const { owner_ids, after, limit } = page
  const order = orderOf(table)
  const parameters: Parameter[] = [page.project_id, limit]
  const next = (value: Parameter, cast: string) => `$${parameters.push(value)}::${cast}`
  const owners = owner_ids
    ? `unnest(${next(owner_ids, 'uuid[]')}) WITH ORDINALITY AS w (id, ord)`
    : '(VALUES (1)) AS w (ord)'
  const owner = `t.${ownerColumn(table)}`
  const isOwned =
    table.erased_with === 'project' ? '' : owner_ids ? `AND ${owner} = w.id` : `AND ${owner} IS NULL`
  const position = order.map((name) => `t.${name}`).join(', ')
  const isBehind = after
    ? `AND (${position}) > (${order.map((name, index) => next(after[index]!, castOf(table.columns[name]!))).join(', ')})`
    : ''
  const text = `
SELECT t.ord, t.id, ${select}, ${order.map((name, index) => `${columnText(name, table.columns[name]!)} AS position_${index}`).join(', ')}
FROM (
  SELECT w.ord, t.*
  FROM ${owners} CROSS JOIN LATERAL (
    SELECT t.*${'id' in table.columns ? '' : ', NULL AS id'} FROM ${table.name} t
    WHERE t.project_id = $1 ${isOwned} ${isBehind} ORDER BY ${position} LIMIT $2
  ) t
  ORDER BY w.ord, ${position} LIMIT $2
) t
${join}
ORDER BY t.ord, ${position}`
  return { statement: planned(`export_${table.name}`, text), parameters }
}

export const FIND_EXPORTED_USER = prepared(
  'find_exported_user',
  'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2',
)

/** The expected size of an export, for its progress. Parameters: $1 project, $2 user's id. Row: sessions, entries. */
export const MEASURE_EXPORT = {
  project: prepared(
    'measure_project_export',
    'SELECT count(*) AS sessions, coalesce(sum(h.last_seq), 0) AS entries FROM session_heads h WHERE h.project_id = $1',
  ),
  user: prepared(
    'measure_user_export',
    `SELECT count(*) AS sessions, coalesce(sum(h.last_seq), 0) AS entries
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.user_id = $2`,
  ),
} as const
