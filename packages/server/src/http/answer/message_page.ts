import type { MessageFormat, StoredText } from '@annals/messages'
import { type ReadEntry, readLog } from '../../log/read/read_log.js'
import type { EntryPage, EntryView } from '../../log/read/read_queries.js'
import type { Queryable } from '../../postgres/database.js'
import type { Cursors } from '../request/cursor.js'
import type { WorkThread } from '../work_thread/work_thread.js'
import { PageRenderer } from './page_renderer.js'

const UNLIMITED = Number.MAX_SAFE_INTEGER
/** Up to so many messages' ids and metas, and so many characters of metas, are kept while the items are written. */
const KEPT_MESSAGES_MAX = 1_000
/** Messages before a page that are searched for the calls that its tool results answer. */
const LOOK_BACK_MESSAGES = 32
const KEPT_LENGTH_MAX = 1024 * 1024

/** What a page of messages shows: the range of seqs of it and all following pages. */
export interface MessagePageRequest {
  project_id: string
  session_id: string
  format: MessageFormat
  /** undefined: the whole session. */
  limit: number | undefined
  time_desc: boolean
  with_events: boolean
  range: { above_seq: number; below_seq: number }
  /** Whether the caller is still there. */
  isWanted: () => boolean
}

interface Kept {
  id: string
  meta: string
  /** Items that the message became: one, or more if the format has one message per tool result. */
  items: number
}

type Walk = (view: EntryView, page: Partial<EntryPage>) => AsyncGenerator<ReadEntry[]>

/**
 * A page of messages as JSON, in chunks. `items`, `ids` and `metas` are parallel lists, so a long page is walked once
 * for each, and only counts are kept between walks. The walks agree because entries never move or disappear.
 */
export async function* messagePage(
  { database, thread }: { database: Queryable; thread: WorkThread },
  request: MessagePageRequest,
  cursors: Cursors,
): AsyncGenerator<string> {
  const { project_id, session_id, time_desc, range, isWanted } = request
  const whole = { project_id, session_id, time_desc, limit: UNLIMITED, ...range }
  const walk: Walk = (view, page) => readLog(database, { ...whole, ...page }, view, isWanted)
  const renderer = new PageRenderer(thread, project_id, request.format)
  const page = new MessageWalk(database, request, walk, renderer)
  yield '{"items":['
  try {
    yield* page.items()
  } finally {
    renderer.close()
  }
  yield '],"ids":['
  yield* page.ids()
  yield '],"metas":['
  yield* page.metas()
  const { next_seq, tokens } = page
  // Both bounds are exclusive: the next page begins with the message that this one left out.
  const next_cursor =
    next_seq === undefined ? '' : cursors.write(String(time_desc ? next_seq + 1 : next_seq - 1))
  yield `],"has_more":${next_cursor !== ''},"next_cursor":"${next_cursor}","this_time_tokens":${tokens}`
  if (request.with_events) {
    yield ',"events":['
    yield* joined(walk('event', { kind: 'event', ...page.ownBounds() }), ({ json }) => json)
    yield ']'
  }
  yield '}'
}

/** The walks over the messages of one page. `items` comes first; the others rely on what it found. */
class MessageWalk {
  tokens = 0
  /** The first message of the next page. */
  next_seq: number | undefined
  private kept: Kept[] | undefined = []
  private keptLength = 0
  private readonly severalItems = new Map<number, number>()
  /** The renderer has seen the messages before the next ones. */
  private following = false

  constructor(
    private readonly database: Queryable,
    private readonly request: MessagePageRequest,
    private readonly walk: Walk,
    private readonly renderer: PageRenderer,
  ) {}

  async *items(): AsyncGenerator<string> {
    const { limit = UNLIMITED } = this.request
    let shown = 0
    const probe = Math.min(limit + 1, UNLIMITED)
    for await (const messages of this.walk('message', { kind: 'message', limit: probe })) {
      const fitting = messages.slice(0, limit - shown)
      if (fitting.length < messages.length) this.next_seq = messages[fitting.length]!.seq
      const rendered = await this.render(fitting)
      const text = rendered.flat().join(',')
      if (text !== '') yield (shown > 0 ? ',' : '') + text
      for (const [index, message] of fitting.entries()) this.note(message, rendered[index]!.length)
      shown += fitting.length
      if (this.next_seq !== undefined) return
    }
  }

  async *ids(): AsyncGenerator<string> {
    yield* this.inStep(
      'message_id',
      ({ id }) => id,
      (id) => `"${id}"`,
    )
  }

  async *metas(): AsyncGenerator<string> {
    yield* this.inStep(
      'message_meta',
      ({ meta }) => meta,
      (meta) => meta,
    )
  }

  /** The page ends before the first message of the next page; events in between belong to this page. */
  ownBounds(): { above_seq?: number; below_seq?: number } {
    if (this.next_seq === undefined) return {}
    return this.request.time_desc ? { above_seq: this.next_seq } : { below_seq: this.next_seq }
  }

  private note(message: ReadEntry, items: number): void {
    const { seq, id, meta, tokens } = message
    this.tokens += tokens!
    this.keptLength += meta!.length
    if (items !== 1) this.severalItems.set(seq, items)
    this.kept?.push({ id: id!, meta: meta!, items })
    if (this.kept && (this.kept.length > KEPT_MESSAGES_MAX || this.keptLength > KEPT_LENGTH_MAX))
      this.kept = undefined
  }

  private async *inStep(
    view: EntryView,
    of: (message: Kept) => string,
    write: (text: string) => string,
  ): AsyncGenerator<string> {
    const times = (items: number, text: string) => Array<string>(items).fill(write(text)).join(',')
    if (this.kept) {
      yield this.kept.map((message) => times(message.items, of(message))).join(',')
      return
    }
    const pieces = this.walk(view, { kind: 'message', ...this.ownBounds() })
    yield* joined(pieces, ({ seq, json }) => times(this.severalItems.get(seq) ?? 1, json))
  }

  /**
   * The items that each message becomes. A conversion links tool calls to their results, so it reads the session in
   * log order, starting some messages before the page.
   */
  private async render(messages: ReadEntry[]): Promise<string[][]> {
    const { project_id, session_id, format, time_desc } = this.request
    if (messages.every((message) => message.format === format)) {
      this.following = false
      return messages.map(({ json }) => [json])
    }
    const chronological = time_desc ? messages.toReversed() : messages
    if (!this.following || time_desc) {
      const page = {
        project_id,
        session_id,
        kind: 'message' as const,
        time_desc: true,
        limit: LOOK_BACK_MESSAGES,
        above_seq: 0,
      }
      for await (const before of readLog(
        this.database,
        { ...page, below_seq: chronological[0]!.seq },
        'message',
      )) {
        await this.renderer.render(before.toReversed().map(toStored))
      }
    }
    this.following = true
    const rendered = await this.renderer.render(chronological.map(toStored))
    return time_desc ? rendered.toReversed() : rendered
  }
}

function toStored({ id, parent_id, format, json }: ReadEntry): StoredText {
  return { id: id!, parent_id: parent_id ?? null, format: format as MessageFormat, blob: json }
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
