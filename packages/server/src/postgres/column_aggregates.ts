import type { Row } from './database.js'

/**
 * Reading many rows as one, with a text for each column: what the driver does costs by row and column. The rows come
 * from a subquery with an ORDER BY, whose order all aggregates keep.
 */

/** SQL of a column, and how its values are carried. */
export interface Column {
  sql: string
  /** `token`: JSON text, or what has no control characters, such as ids and numbers; `text`: any text; `time`: timestamptz. */
  as: 'token' | 'text' | 'time'
}

/** No JSON text that PostgreSQL writes has a control character in it. */
const SEPARATOR = '\x01'

/** `2026-11-21T09:30:00.123456`, as it is in full. */
const TIME_LENGTH = 26

/** The columns as a select list of aggregates, one for each name. */
export function aggregated(columns: Record<string, Column>): string {
  const aggregates = Object.entries(columns).map(([name, column]) => `${aggregate(column)} AS ${name}`)
  return aggregates.join(', ')
}

function aggregate({ sql, as }: Column): string {
  if (as === 'token') return `string_agg(coalesce((${sql})::text, ''), E'\\x01')`
  // Whatever DateStyle and TimeZone the connection has.
  return as === 'time' ? `json_agg((${sql}) AT TIME ZONE 'UTC')` : `json_agg(${sql})`
}

/** The values of each column in the order of the rows, null as null; times in RFC 3339 in UTC with microseconds. */
export function columnsOf<Name extends string>(
  columns: Record<Name, Column>,
  row: Row,
): Record<Name, Array<string | null>> {
  const values = {} as Record<Name, Array<string | null>>
  for (const name in columns) values[name] = valuesOf(columns[name], row[name]!)
  return values
}

function valuesOf({ as }: Column, joined: string | null): Array<string | null> {
  if (joined === null) return []
  if (as === 'token') return joined.split(SEPARATOR).map((value) => (value === '' ? null : value))
  const values = JSON.parse(joined) as Array<string | null>
  return as === 'time' ? values.map((time) => time && wholeTime(time)) : values
}

/** PostgreSQL leaves out zeros at the end. */
function wholeTime(time: string): string {
  if (time.length === TIME_LENGTH) return `${time}Z`
  const [seconds = '', fraction = ''] = time.split('.')
  return `${seconds}.${fraction.padEnd(6, '0')}Z`
}
