import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerEntries } from '../../blobs/blob_bytes.js'
import { jsonList } from '../../json/json_list.js'
import { ENTRY_PAGE_LIMIT_DEFAULT, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../limits.js'
import { type FilteredList, filteredList } from '../../lists/filtered_list_queries.js'
import type { ListPosition } from '../../lists/keyset_queries.js'
import { type Listed, PIECE_READ_BYTES, pagesOf, readList } from '../../lists/listed.js'
import type { ReadEntry } from '../../log/read/entry_columns.js'
import { type LogPosition, readPosition, writePosition } from '../../log/read/log_position.js'
import { LogReader, type ReadPage, UNLIMITED } from '../../log/read/read_log.js'
import { listReadBytes } from '../admission/request_memory.js'
import { Cursors } from '../request/cursor.js'
import { answer } from './answer.js'
import { sendChunks } from './answer_chunks.js'

const SEPARATOR = '|'
/** Characters of items that are joined at once. */
const JOINED_LENGTH_MAX = 256 * 1024
/** The same of entries: with commas and what stands around them, they are a piece of the answer. */
const JOINED_ENTRIES_LENGTH_MAX = 60 * 1024

/** Reads the position in a list out of a cursor. */
export function readListCursor(
  cursors: Cursors,
  cursor: string | undefined,
): { created_at: string; id: string } | undefined {
  if (cursor === undefined) return undefined
  const [created_at, id] = cursors.read(cursor).split(SEPARATOR)
  return { created_at: created_at!, id: id! }
}

/** A cursor to the rows behind a position in a list. */
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

/** The seqs that a page of a log is of, and up to where its reader has seen the log. */
export interface PageRange {
  range: { above_seq: number; below_seq: number }
  seen: LogPosition
}

/**
 * The range of a page that begins behind the position in its cursor, in the page's direction, and behind `after_seq`.
 * @throws AnnalsError invalid_cursor
 */
export function readPageRange(
  cursors: Cursors,
  { cursor, after_seq = 0, time_desc }: { cursor?: string; time_desc?: boolean; after_seq?: number },
): PageRange {
  if (cursor === undefined)
    return { range: { above_seq: after_seq, below_seq: UNLIMITED }, seen: { seq: after_seq } }
  const position = readPosition(cursors.read(cursor))
  const range = time_desc
    ? { above_seq: after_seq, below_seq: position.seq }
    : { above_seq: position.seq, below_seq: UNLIMITED }
  return { range, seen: position.seq < after_seq ? { seq: after_seq } : position }
}

/** Which page of a list is asked for. */
interface PageQuery {
  cursor?: string
  limit?: number
  time_desc?: boolean
}

/** Answers with a page of a list. `find` gives one row more than `limit` where another page follows. */
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
  return answer(reply, `{"items":[${items.join(',')}${end}`)
}

/** Answers with a page of a list that may be filtered by user and by a document, which is JSON as text. */
export function answerFilteredList(
  request: FastifyRequest,
  reply: FastifyReply,
  list: FilteredList,
  query: PageQuery & { user?: string; parent?: string },
  document: string | undefined,
): Promise<FastifyReply> {
  const { user, time_desc } = query
  const { project_id } = request
  const parent = query.parent?.toLowerCase()
  const cursors = cursorsOfList(project_id, list, { user, parent, time_desc }, document)
  const find = (position: ListPosition) =>
    readList(request, filteredList(list, { project_id, user, document, parent }, position))
  // More is reserved as it is read: the largest configs are rare, and nobody is refused for what others might have.
  return answerPage(reply, cursors, query, find, PIECE_READ_BYTES)
}

/** Where a part of a list begins, and how long it is. */
export type PagePosition = Omit<ListPosition, 'time_desc'>

/** Answers with all that a list has behind a position as one page, which is read and sent part by part. */
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

/** The log of the session that the path names, which is read as long as the caller waits for it. */
export function logOfPath(reply: FastifyReply, seen?: LogPosition): LogReader {
  const { database, project_id, params } = reply.request
  const { session_id } = params as { session_id: string }
  return new LogReader(database, { project_id, session_id }, seen, () => !reply.raw.destroyed)
}

/** Answers with a page of the log that the path names, in order of seq. */
export function answerLogPage(
  reply: FastifyReply,
  view: 'event' | 'item',
  cursors: Cursors,
  query: PageQuery & Pick<ReadPage, 'kind' | 'type'> & { after_seq?: number },
): Promise<FastifyReply> {
  const { type, limit = ENTRY_PAGE_LIMIT_DEFAULT, time_desc = false } = query
  const kind = view === 'event' ? view : query.kind
  const { range, seen } = readPageRange(cursors, query)
  const entries = logOfPath(reply, seen).read(view, { kind, type, ...range, time_desc, limit: limit + 1 })
  return answerEntriesPage(reply, entries, limit, (last) => cursors.write(writePosition(last)))
}

/** Answers with a page of entries: see entriesPage. */
export function answerEntriesPage(
  reply: FastifyReply,
  ...page: Parameters<typeof entriesPage>
): Promise<FastifyReply> {
  return answerEntries(reply, entriesPage(...page))
}

/**
 * A page of a log as JSON, given its pieces with one entry more than `limit` where another page follows, in texts that
 * are not much longer than a piece of an answer. `cursorOf` gives the cursor behind an entry.
 *
 * A request that has waited for the database lies in V8's old generation, where what it held last stays long after its
 * end. So nothing here holds on to an entry's JSON, and the pieces are emptied.
 */
async function* entriesPage(
  pieces: AsyncGenerator<ReadEntry[]>,
  limit: number,
  cursorOf: (last: ReadEntry) => string,
): AsyncGenerator<string> {
  let shown = 0
  let last: ReadEntry | undefined
  let has_more = false
  for await (const entries of pieces) {
    const count = Math.min(entries.length, limit - shown)
    has_more = count < entries.length
    if (count === 0) break
    last = entries[count - 1]!
    for (let at = 0; at < count; ) {
      const { text, to } = joinedFrom(entries, at, count, shown + at === 0 ? '{"items":[' : ',')
      yield text
      at = to
    }
    shown += count
    last.json = ''
    entries.length = 0
  }
  const next_cursor = has_more ? cursorOf(last!) : ''
  yield `${shown === 0 ? '{"items":[' : ''}],"has_more":${has_more},"next_cursor":"${next_cursor}"}`
}

/** The JSON of as many entries as make a piece of an answer, and the place behind them. */
function joinedFrom(entries: ReadEntry[], from: number, end: number, begin: string) {
  const texts: string[] = []
  let length = 0
  let to = from
  for (; to < end; to++) {
    const { json } = entries[to]!
    if (length > 0 && length + json.length > JOINED_ENTRIES_LENGTH_MAX) break
    // Joined with the first: adding to the text later would copy it.
    texts.push(to === from ? begin + json : json)
    length += json.length
  }
  return { text: texts.join(','), to }
}
