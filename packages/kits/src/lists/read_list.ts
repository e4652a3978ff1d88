import { columnsOf, TEXT_BYTES_MAX } from '../postgres/column_aggregates.js'
import type { Tenant } from '../postgres/database.js'
import type { Listed, Listing, ListStatement, Values } from './listed.js'

/** So many rows of the largest documents are less than what a column carries. */
const LARGE_ROWS_AT_ONCE = 8

/** Memory that reading rows at once takes: a column as received, as text, as rows, and as the resources. */
export const PIECE_READ_BYTES = 4 * TEXT_BYTES_MAX

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

/** Texts of a page that is remembered are no longer than this together. */
const REMEMBERED_LENGTH_MAX = 64 * 1024

/** The page that was read last, by the texts of its columns. */
let last: { listing: Listing; project_id: string; texts: Array<string | null>; rows: Listed[] } | undefined

/**
 * Undefined: there is more in a column than is carried. Callers who ask for the same page at once, or again while it stays
 * as it is, get the same rows.
 */
async function readRows(
  { database, project_id }: Tenant,
  { statement, parameters, listing }: ListStatement,
): Promise<Listed[] | undefined> {
  const { columns, json } = listing
  const [row] = await database.query(statement, parameters)
  const texts = Object.values(row!)
  if (last?.listing === listing && last.project_id === project_id && isSame(texts, last.texts))
    return last.rows
  if (
    row!.id !== null &&
    Object.entries(columns).some(([name, { is_bounded }]) => is_bounded && row![name] === null)
  )
    return undefined
  const values: Values = columnsOf(columns, row!)
  const { id, created_at, listed_at = created_at } = values
  const rows = id!.map((id, at) => ({
    id: id!,
    created_at: listed_at![at]!,
    json: json(values, at, project_id),
  }))
  const length = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
  if (length <= REMEMBERED_LENGTH_MAX) last = { listing, project_id, texts, rows }
  return rows
}

function isSame(texts: Array<string | null>, others: Array<string | null>): boolean {
  return texts.length === others.length && texts.every((text, at) => text === others[at])
}

/** The items of pages. Each page begins after the one before; one with fewer rows than `full` is the last. */
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
