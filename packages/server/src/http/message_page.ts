import type { MessageFormatName } from '../contract/message_format.js'
import type { Queryable } from '../database/database.js'
import type { EntryPage, EntryView } from '../database/queries/read_entries.js'
import { type ReadEntry, readLog } from '../log/read_log.js'
import { renderStored, type StoredText } from '../messages/render_stored.js'
import type { Cursors } from './cursor.js'

const UNLIMITED = Number.MAX_SAFE_INTEGER
/** Ids and metas of up to so many messages, and characters of metas, are kept while the items are written. */
const KEPT_MESSAGES_MAX = 1_000
const KEPT_LENGTH_MAX = 1024 * 1024

/** What a page of messages shows. `from` is where it begins and `last_seq` where the log ends. */
export interface MessagePageRequest {
  project_id: string
  session_id: string
  format: MessageFormatName
  /** undefined: the whole session. */
  limit: number | undefined
  time_desc: boolean
  with_events: boolean
  from: { above_seq?: number; below_seq?: number }
  last_seq: number
}

interface Kept {
  id: string
  meta: string
  /** Items that the message became: one, or more where a format has one message a tool result. */
  items: number
}

/**
 * A page of messages as JSON, in chunks. `items`, `ids` and `metas` run in step, and each is a list of its own,
 * so a long page is walked once for each: nothing but counts is kept from one walk to the next. The walks agree,
 * since a log's entries neither change place nor leave.
 */
export async function* messagePage(
  database: Queryable,
  request: MessagePageRequest,
  cursors: Cursors,
): AsyncGenerator<string> {
  const { time_desc, limit = UNLIMITED, from, last_seq } = request
  const bounds = {
    above_seq: from.above_seq ?? 0,
    below_seq: Math.min(from.below_seq ?? UNLIMITED, last_seq + 1),
  }
  const walk = (view: EntryView, page: Partial<EntryPage>) => {
    const { project_id, session_id } = request
    return readLog(
      database,
      { project_id, session_id, time_desc, limit: UNLIMITED, ...bounds, ...page },
      view,
    )
  }

  let kept: Kept[] | undefined = []
  let keptLength = 0
  let shown = 0
  let tokens = 0
  let next_seq: number | undefined
  const severalItems = new Map<number, number>()
  yield '{"items":['
  for await (const messages of walk('message', {
    kind: 'message',
    limit: limit === UNLIMITED ? UNLIMITED : limit + 1,
  })) {
    const fitting = messages.slice(0, limit - shown)
    if (fitting.length < messages.length) next_seq = messages[fitting.length]!.seq
    const rendered = await renderPiece(database, request, fitting)
    const texts = rendered.flat()
    if (texts.length > 0) yield (shown > 0 ? ',' : '') + texts.join(',')
    fitting.forEach((message, index) => {
      const items = rendered[index]!.length
      if (items !== 1) severalItems.set(message.seq, items)
      tokens += message.tokens!
      keptLength += message.meta!.length
      kept?.push({ id: message.id!, meta: message.meta!, items })
    })
    if (kept && (kept.length > KEPT_MESSAGES_MAX || keptLength > KEPT_LENGTH_MAX)) kept = undefined
    shown += fitting.length
    if (next_seq !== undefined) break
  }

  // The page ends before the first message of the next one; events in between belong to this page.
  const ownBounds =
    next_seq === undefined ? {} : time_desc ? { above_seq: next_seq } : { below_seq: next_seq }
  const repeat = (seq: number, text: string) =>
    Array<string>(severalItems.get(seq) ?? 1)
      .fill(text)
      .join(',')
  const list = async function* (name: 'id' | 'meta') {
    if (kept) {
      const texts = kept.map((message) =>
        Array<string>(message.items)
          .fill(name === 'id' ? `"${message.id}"` : message.meta)
          .join(','),
      )
      yield texts.join(',')
      return
    }
    const quoted = (json: string) => (name === 'id' ? `"${json}"` : json)
    yield* joined(walk(`message_${name}`, { kind: 'message', ...ownBounds }), ({ seq, json }) =>
      repeat(seq, quoted(json)),
    )
  }
  yield '],"ids":['
  yield* list('id')
  yield '],"metas":['
  yield* list('meta')
  const next_cursor =
    next_seq === undefined ? '' : cursors.write(String(time_desc ? next_seq + 1 : next_seq - 1))
  yield `],"has_more":${next_cursor !== ''},"next_cursor":"${next_cursor}","this_time_tokens":${tokens}`
  if (request.with_events) {
    yield ',"events":['
    yield* joined(walk('event', { kind: 'event', ...ownBounds }), ({ json }) => json)
    yield ']'
  }
  yield '}'
}

/** The items that each message becomes. Where messages are converted, the one before them is looked at as well. */
async function renderPiece(
  database: Queryable,
  request: MessagePageRequest,
  messages: ReadEntry[],
): Promise<string[][]> {
  const { project_id, session_id, format, time_desc } = request
  const chronological = (time_desc ? messages.toReversed() : messages).map(toStored)
  const oldest = time_desc ? messages.at(-1) : messages[0]
  let before: ReadEntry | undefined
  if (oldest && chronological.some((message) => message.format !== format)) {
    const page = {
      project_id,
      session_id,
      kind: 'message' as const,
      below_seq: oldest.seq,
      time_desc: true,
      limit: 1,
    }
    for await (const [entry] of readLog(database, page, 'message')) before = entry
  }
  const rendered = renderStored(chronological, format, before && toStored(before))
  return time_desc ? rendered.toReversed() : rendered
}

function toStored({ id, parent_id, format, json }: ReadEntry): StoredText {
  return { id: id!, parent_id: parent_id ?? null, format: format as MessageFormatName, blob: json }
}

async function* joined(
  pieces: AsyncGenerator<ReadEntry[]>,
  write: (entry: ReadEntry) => string,
): AsyncGenerator<string> {
  let separator = ''
  for await (const entries of pieces) {
    yield separator + entries.map(write).join(',')
    separator = ','
  }
}
