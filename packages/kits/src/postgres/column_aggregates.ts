import type { Row } from './database.js'

/**
 * Reading many rows as one, with a text for each column: what the driver does costs by row and column. The rows come
 * from a subquery with an ORDER BY, whose order all aggregates keep.
 */

export interface Column {
  sql: string
  /**
   * `token`: JSON text, or what has no control characters, such as ids and numbers, and is never null; `optional`: the
   * same, but may be null; `text`: any text; `time`: timestamptz.
   */
  as: 'token' | 'optional' | 'text' | 'time'
  /** Of a `token`: null instead of a text that would hold up the event loop where it is read. See readList. */
  is_bounded?: true
}

/** A text of this size is decoded and split in some milliseconds. */
export const TEXT_BYTES_MAX = 1024 * 1024

/** No JSON text that PostgreSQL writes has a control character in it. */
const SEPARATOR = '\x01'
const COLUMN_SEPARATOR = '\x02'

/** `2026-11-21T09:30:00.123456`, as it is in full. */
const TIME_LENGTH = 26

export function aggregated(columns: Record<string, Column>): string {
  const aggregates = Object.entries(columns).map(([name, column]) => `${aggregate(column)} AS ${name}`)
  return aggregates.join(', ')
}

/** The same as arguments of `concat`, for a function that returns text: each column after a separator. */
export function joinedText(columns: Record<string, Column>): string {
  const aggregates = Object.values(columns).map((column) => `E'\\x02', ${aggregate(column)}`)
  return aggregates.join(', ')
}

/** The text before joined columns, their row, and the text after them and a separator; or only the first. */
export function splitText(
  columns: Record<string, Column>,
  text: string,
): [ahead: string, row?: Row, behind?: string] {
  const [ahead = '', ...values] = text.split(COLUMN_SEPARATOR)
  if (values.length === 0) return [ahead]
  const row = Object.fromEntries(Object.keys(columns).map((name, index) => [name, values[index] || null]))
  return [ahead, row, values.at(-1)!]
}

/**
 * A time in UTC, whatever TimeZone the connection has. PostgreSQL would look up the name of a zone each time.
 */
export function inUtc(sql: string): string {
  return `(${sql}) AT TIME ZONE INTERVAL '0'`
}

function aggregate({ sql, as, is_bounded }: Column): string {
  const texts = `string_agg((${sql})::text, E'\\x01')`
  // PostgreSQL carries out the same aggregate once.
  if (is_bounded) return `CASE WHEN octet_length(${texts}) <= ${TEXT_BYTES_MAX} THEN ${texts} END`
  if (as === 'token') return texts
  if (as === 'optional') return `string_agg(coalesce((${sql})::text, ''), E'\\x01')`
  return as === 'time' ? `json_agg(${inUtc(sql)})` : `json_agg(${sql})`
}

/**
 * The values of each column in the order of the rows, null as null; times in RFC 3339 in UTC with microseconds. The row
 * gives them away: a request that has waited for it lies in V8's old generation, and what that holds stays long after
 * the request has been answered.
 */
export function columnsOf<Name extends string>(
  columns: Record<Name, Column>,
  row: Row,
): Record<Name, Array<string | null>> {
  const values = {} as Record<Name, Array<string | null>>
  for (const name in columns) {
    values[name] = valuesOf(columns[name], row[name]!)
    row[name] = null
  }
  return values
}

function valuesOf({ as }: Column, joined: string | null): Array<string | null> {
  if (joined === null) return []
  if (as === 'token') return joined.split(SEPARATOR)
  if (as === 'optional') return joined.split(SEPARATOR).map((value) => (value === '' ? null : value))
  const values = JSON.parse(joined) as Array<string | null>
  return as === 'time' ? values.map((time) => time && wholeTime(time)) : values
}

/** A time in JSON of PostgreSQL's, which leaves out zeros at the end, in full. */
export function wholeTime(time: string): string {
  if (time.length === TIME_LENGTH) return `${time}Z`
  return `${(time.includes('.') ? time : `${time}.`).padEnd(TIME_LENGTH, '0')}Z`
}
