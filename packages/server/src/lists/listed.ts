import { type Column, columnsOf, TEXT_BYTES_MAX } from '../postgres/column_aggregates.js'
import type { Parameter, Tenant } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'

/** One row of a list: the resource as JSON, and its position in the list's order. */
export interface Listed {
  json: string
  created_at: string
  id: string
}

/** The values that a list carries of its rows, by column. */
type Values = Record<string, Array<string | null>>

/**
 * What a list carries of each row, which is `t`, and how that becomes the resource's JSON: it costs less here than in
 * PostgreSQL.
 */
export interface Listing {
  /** Among them PLACE; and `listed_at`, where the order is not that of `created_at`. */
  columns: Record<string, Column>
  json(values: Values, at: number, project_id: string): string
}

export interface Composed {
  statement: Statement
  parameters: Parameter[]
}

/**
 * The statement of a page of a list. One row with the columns of `listing`, of one row more than `limit` if there are more.
 * Its parameters begin as listParameters says.
 */
export interface ListStatement extends Composed {
  listing: Listing
}

export const PLACE: Record<'id' | 'created_at', Column> = {
  id: { sql: 't.id', as: 'token' },
  created_at: { sql: 't.created_at', as: 'time' },
}

export function idText(id: string | null | undefined): string {
  return id ? `"${id}"` : 'null'
}

/** A list of resources that PostgreSQL writes as JSON, with an SQL expression. */
export function writtenInSql(json: string): Listing {
  return {
    columns: { ...PLACE, json: { sql: json, as: 'token', is_bounded: true } },
    json: ({ json }, at) => json![at]!,
  }
}

/** So many rows of the largest documents are less than what a column carries. */
const LARGE_ROWS_AT_ONCE = 8

/** Memory that reading rows at once takes: a column as received, as text, as rows, and as the resources. */
export const PIECE_READ_BYTES = 4 * TEXT_BYTES_MAX

/** What reads a list; `memory` reserves more where its rows are large. */
export interface ListReader extends Tenant {
  memory?: { hold(bytes: number): Promise<void> }
}

/** The rows of a list: at once, but in pieces where they are so large that reading them would hold up other requests. */
export async function readList(tenant: ListReader, page: ListStatement): Promise<Listed[]> {
  const whole = await readRows(tenant, page)
  if (whole) return whole
  const [project_id, created_at, id, rows_max, ...more] = page.parameters
  const listed: Listed[] = []
  let length = 0
  for (let isLast = false; !isLast; ) {
    const after = listed.at(-1) ?? { created_at: created_at!, id: id! }
    const limit = Math.min(Number(rows_max) - listed.length, LARGE_ROWS_AT_ONCE)
    const read = (rows: number) =>
      readRows(tenant, { ...page, parameters: [project_id!, after.created_at, after.id, rows, ...more] })
    // Texts with much to be escaped are larger than they may be.
    const piece = (await read(limit)) ?? (await read(1))
    if (!piece) throw new Error('a row of a list is larger than rows can be')
    listed.push(...piece)
    for (const { json } of piece) length += json.length
    await tenant.memory?.hold(PIECE_READ_BYTES + 2 * length)
    isLast = piece.length === 0 || listed.length >= Number(rows_max)
  }
  return listed
}

/** Undefined: there is more in a column than is carried. */
async function readRows(
  { database, project_id }: Tenant,
  { statement, parameters, listing: { columns, json } }: ListStatement,
): Promise<Listed[] | undefined> {
  const [row] = await database.query(statement, parameters)
  if (
    row!.id !== null &&
    Object.entries(columns).some(([name, { is_bounded }]) => is_bounded && row![name] === null)
  )
    return undefined
  const values: Values = columnsOf(columns, row!)
  const { id, created_at, listed_at = created_at } = values
  return id!.map((id, at) => ({ id: id!, created_at: listed_at![at]!, json: json(values, at, project_id) }))
}

/** The items of pages, of which each begins behind the one before. One with fewer rows than `full` is the last. */
export async function* pagesOf(
  find: (after: Omit<Listed, 'json'> | undefined) => Promise<Listed[]>,
  full: number,
  after?: Omit<Listed, 'json'>,
): AsyncGenerator<string[]> {
  for (let rows: Listed[]; ; after = rows.at(-1)) {
    rows = await find(after)
    yield rows.map(({ json }) => json)
    if (rows.length < full) return
  }
}
