import { showVersion } from '@annals/kits/http/answer/entity_tag.js'
import type { Cursors, PageQuery } from '@annals/kits/http/answer/page_answer.js'
import { ENTRY_PAGE_LIMIT_DEFAULT } from '@annals/kits/limits.js'
import { type LogPosition, readPosition, writePosition } from '@annals/kits/lists/log_position.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { answerEntries } from '../blobs/blob_bytes.js'
import type { ReadEntry } from './read/entry_columns.js'
import { LogReader, type ReadPage, UNLIMITED } from './read/read_log.js'
import { READ_LOG_VERSION } from './read/read_queries.js'

/** Most characters of entries joined at once: with commas and the envelope, they are one piece of the answer. */
const JOINED_ENTRIES_LENGTH_MAX = 60 * 1024

/** The seqs that a page of a log is of, and up to where its reader has seen the log. */
export interface PageRange {
  range: { above_seq: number; below_seq: number }
  seen: LogPosition
}

/**
 * The range of a page that begins after the position in its cursor, in the page's direction, and after `after_seq`.
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

export function logOfPath(reply: FastifyReply, seen?: LogPosition): LogReader {
  const { database, project_id, params } = reply.request
  const { session_id } = params as { session_id: string }
  const isWanted = () => !reply.raw.destroyed
  const shows = (version: string | undefined) => showVersion(reply, version)
  return new LogReader(database, { project_id, session_id }, seen, isWanted, shows)
}

/** A page of a log shows one version of it, except for the bytes of blobs. */
export async function versionOfLog({
  database,
  project_id,
  params,
}: FastifyRequest): Promise<string | undefined> {
  const { session_id } = params as { session_id: string }
  const [row] = await database.query(READ_LOG_VERSION, [project_id, session_id])
  return row?.version ?? undefined
}

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

export function answerEntriesPage(
  reply: FastifyReply,
  ...page: Parameters<typeof entriesPage>
): Promise<FastifyReply> {
  return answerEntries(reply, entriesPage(...page))
}

/**
 * A page of a log as JSON, given its pieces with one entry more than `limit` where another page follows, in texts that
 * are not much longer than a piece of an answer. `cursorOf` returns the cursor after an entry.
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

/** The JSON of as many entries as make a piece of an answer, and the place after them. */
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
