import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../limits.js'
import {
  BEFORE_ALL,
  type FilteredList,
  filteredList,
  type Listed,
  type ListPosition,
} from '../../lists/listed.js'
import { PIECE_READ_BYTES, pagesOf, readList } from '../../lists/read_list.js'
import { jsonList } from '../../lists/resource_json.js'
import type { Parameter } from '../../postgres/database.js'
import type { Statement } from '../../postgres/statement.js'
import { answer, listReadBytes, pageText, sendChunks } from './answer.js'

const SEPARATOR = '|'
/** Most characters of items that are joined at once. */
const JOINED_LENGTH_MAX = 256 * 1024

export function readListCursor(
  cursors: Cursors,
  cursor: string | undefined,
): { created_at: string; id: string } | undefined {
  if (cursor === undefined) return undefined
  const [created_at, id] = cursors.read(cursor).split(SEPARATOR)
  return { created_at: created_at!, id: id! }
}

export function writeListCursor(
  cursors: Cursors,
  { created_at, id }: { created_at: string; id: string },
): string {
  return cursors.write(`${created_at}${SEPARATOR}${id}`)
}

/** The cursors of a list that may be filtered. */
export function cursorsOfList(
  project_id: string,
  list: FilteredList,
  {
    user,
    parent,
    time_desc = false,
  }: { user?: string | undefined; parent?: string | undefined; time_desc?: boolean | undefined },
  document: string | undefined,
): Cursors {
  // Cursors from before there were parents stay valid.
  const parents = parent === undefined ? [] : [parent]
  return new Cursors(list.order?.name ?? list.list.table, project_id, time_desc, user, document, ...parents)
}

export interface PageQuery {
  cursor?: string
  limit?: number
  time_desc?: boolean
}

/** The page that was answered last: see readList. */
let last: { rows: Listed[]; limit: number; of: string; text: string } | undefined

export async function answerPage(
  reply: FastifyReply,
  cursors: Cursors,
  { cursor, limit = PAGE_LIMIT_DEFAULT, time_desc = false }: PageQuery,
  find: (position: ListPosition) => Promise<Listed[]>,
  read_bytes_max = Number.POSITIVE_INFINITY,
): Promise<FastifyReply> {
  const after = readListCursor(cursors, cursor)
  await reply.request.memory.hold(Math.min(listReadBytes(limit + 1), read_bytes_max))
  const rows = await find({ time_desc, limit, after })
  if (last?.rows === rows && last.limit === limit && last.of === cursors.of) return answer(reply, last.text)
  const next_cursor = rows.length > limit ? writeListCursor(cursors, rows[limit - 1]!) : ''
  const end = `],"has_more":${next_cursor !== ''},"next_cursor":"${next_cursor}"}`
  const items: string[] = []
  let length = 0
  for (const { json } of rows) {
    if (items.length === limit) break
    items.push(json)
    length += json.length
  }
  if (length > JOINED_LENGTH_MAX) return sendChunks(reply, jsonList('{"items":[', [items], end))
  const text = `{"items":[${items.join(',')}${end}`
  last = { rows, limit, of: cursors.of, text }
  return answer(reply, text)
}

/** Answers with a page of a scanned list, and tells what is shown. `more`: its parameters from $5 on. */
export async function answerScannedList(
  { database, project_id }: FastifyRequest,
  reply: FastifyReply,
  cursors: Cursors,
  { cursor, limit = PAGE_LIMIT_DEFAULT, time_desc = false }: PageQuery,
  statement: Statement,
  more: Parameter[],
  shows: (items: string[]) => void,
): Promise<FastifyReply> {
  const { created_at, id } = readListCursor(cursors, cursor) ?? BEFORE_ALL[time_desc ? 'desc' : 'asc']
  const rows = await database.query(statement, [project_id, created_at, id, limit, ...more])
  const items = rows.flatMap(({ json }) => json ?? [])
  const next = rows[items.length]
  const last = next?.is_passed === 't' ? next : rows[items.length - 1]
  shows(items)
  const next_cursor = next ? writeListCursor(cursors, { created_at: last!.created_at!, id: last!.id! }) : ''
  return answer(reply, pageText(items, next_cursor))
}

/** Answers with a page of a list that may be filtered by user and by a document, which is JSON as text. */
export function answerFilteredList(
  request: FastifyRequest,
  reply: FastifyReply,
  list: FilteredList,
  query: PageQuery & { user?: string; parent?: string },
  document: string | undefined,
  /** Told of the rows that are found. */
  shows?: (rows: Listed[]) => void,
): Promise<FastifyReply> {
  const { user, time_desc } = query
  const { project_id } = request
  const parent = query.parent?.toLowerCase()
  const cursors = cursorsOfList(project_id, list, { user, parent, time_desc }, document)
  const find = async (position: ListPosition) => {
    const rows = await readList(request, filteredList(list, { project_id, user, document, parent }, position))
    shows?.(rows.slice(0, position.limit))
    return rows
  }
  // More is reserved as it is read: the largest configs are rare, and nobody is refused for what others might have.
  return answerPage(reply, cursors, query, find, PIECE_READ_BYTES)
}

/** Where a part of a list begins, and how long it is. */
export type PagePosition = Omit<ListPosition, 'time_desc'>

/** Answers with all that a list has after a position as one page, which is read and sent part by part. */
export async function answerWholeList(
  reply: FastifyReply,
  find: (position: PagePosition) => Promise<Listed[]>,
  after: PagePosition['after'],
  row_bytes_max: number,
): Promise<FastifyReply> {
  await reply.request.memory.hold(listReadBytes(PAGE_LIMIT_MAX + 1, row_bytes_max))
  const next = (after: PagePosition['after']) => find({ after, limit: PAGE_LIMIT_MAX })
  const pages = pagesOf(next, PAGE_LIMIT_MAX + 1, after)
  return sendChunks(reply, jsonList('{"items":[', pages, '],"has_more":false,"next_cursor":""}'))
}

const DIGEST_BYTES = 12

/**
 * A cursor is the position after a page, and a digest of that position and everything else that defined the page:
 * project, list, order, filters. So a cursor that is damaged, or used with another query, does not match its digest.
 * It is not secret: a forged one would only choose a position in the caller's own list.
 */
export class Cursors {
  /** What defined the page. */
  readonly of: string

  constructor(...query: ReadonlyArray<string | boolean | undefined>) {
    this.of = JSON.stringify(query)
  }

  /** Writes a position (any text) as a cursor: URL-safe characters only. */
  write(position: string): string {
    return Buffer.concat([this.digest(position), Buffer.from(position)]).toString('base64url')
  }

  /** The position in a cursor. @throws AnnalsError invalid_cursor */
  read(cursor: string): string {
    const bytes = Buffer.from(cursor, 'base64url')
    const position = bytes.subarray(DIGEST_BYTES).toString()
    // Decoding ignores invalid characters; a cursor must be spelt exactly as it was written.
    if (
      bytes.toString('base64url') === cursor &&
      this.digest(position).equals(bytes.subarray(0, DIGEST_BYTES))
    )
      return position
    throw new AnnalsError('invalid_cursor')
  }

  private digest(position: string): Buffer {
    return hash('sha256', `${this.of}\n${position}`, 'buffer').subarray(0, DIGEST_BYTES)
  }
}
