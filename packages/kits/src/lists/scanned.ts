import { PIECE_BYTES_MAX } from '../limits.js'
import { composedOnce, onTables, planned, type Statement } from '../postgres/statement.js'
import { timestampText } from './resource_json.js'

/** Rows that one page looks at: with a rare filter it may be shorter than asked for, but none takes long. */
export const SCANNED_MAX = 1_000

/** A list in the order of an index that may leave out any row. SQL about a row calls it `t`. */
export interface ScannedList {
  table: string
  /** Which rows are looked at, with parameters from $5 on. */
  which: string
  /** The time by which they are ordered, and the id that breaks ties. */
  at: string
  id: string
  /** Where it begins; by default at the time in $2. */
  from?: string
  /** One row, or none, that each row is joined with: a SELECT that calls the row's id `t.listed_id`. Its columns are the row's. */
  joined?: string
  /** Whether a row is on the page, with parameters from $5 on. */
  shows: string
  json: string
  /** How large that is, if it may be large. */
  bytes?: string
  /** Its parameters name the few rows that are looked at, so it is planned for them: which, as `which` does. */
  only?: string | undefined
  /** One row that is read once, before the others: `first`. */
  first?: string | undefined
}

/**
 * A page of such a list. Parameters: $1 project, $2 time and $3 id to begin after, $4 how many. Rows: json, created_at and
 * id, by which the list goes on. If there may be more, a row without json follows: the next one of the list, or, if
 * `is_passed`, the last one that was looked at.
 */
export function scannedList(name: string, list: ScannedList, direction: 'asc' | 'desc'): Statement {
  const { table, which, at, id, from = '$2::timestamptz', shows, json, bytes = '0', only, first } = list
  const [columns, join] = list.joined ? ['t.*, j.*', ` CROSS JOIN LATERAL (${list.joined}) j`] : ['t.*', '']
  const order = `ORDER BY t.listed_at ${direction}, t.listed_id ${direction}`
  const rows = `FROM ${table} t
      WHERE t.project_id = $1 AND ${only ? `${only} AND ` : ''}${which} AND (${at}, ${id}) ${direction === 'asc' ? '>' : '<'} (${from}, $3::uuid)
      ORDER BY ${at} ${direction}, ${id} ${direction}`
  const compose = () => `
WITH ${first ? `first AS MATERIALIZED (${first}), ` : ''}page AS MATERIALIZED (
  SELECT t.*, row_number() OVER (${order}) AS nth, sum(${bytes}) OVER (${order}) - ${bytes} AS before
  FROM (
    SELECT ${columns} FROM (
      SELECT t.*, ${at} AS listed_at, ${id} AS listed_id ${rows} LIMIT ${SCANNED_MAX}
    ) t${join} WHERE ${shows} ${order} LIMIT $4::int + 1
  ) t
)
(SELECT CASE WHEN t.nth <= $4::int AND t.before < ${PIECE_BYTES_MAX} THEN ${json} END AS json,
  ${timestampText('t.listed_at')} AS created_at, t.listed_id AS id, false AS is_passed
FROM page t ${order})
UNION ALL
SELECT NULL, ${timestampText('t.listed_at')}, t.listed_id, true
FROM (
  SELECT ${at} AS listed_at, ${id} AS listed_id ${rows} LIMIT 1 OFFSET ${SCANNED_MAX - 1}
) t
WHERE (SELECT count(*) FROM page) <= $4::int`
  const full_name = `${name}_${direction}`
  return only ? planned(full_name, onTables(compose())) : composedOnce(full_name, compose)
}
