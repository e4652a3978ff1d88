import type { MessageFormat } from '@annals/messages'
import { type LogReader, type ReadEntry, type ReadPage, UNLIMITED } from '../../log/read/read_log.js'
import type { EntryView } from '../../log/read/read_queries.js'
import type { Cursors } from '../request/cursor.js'
import type { WorkThread } from '../work_thread/work_thread.js'
import { MessageTurns, storedTurn } from './message_turns.js'
import { PageRenderer } from './page_renderer.js'

/** Up to so many messages' ids and metas, and so many characters of metas, are kept while the items are written. */
const KEPT_MESSAGES_MAX = 1_000
/** Messages before a page that are searched for the calls that its tool results answer. */
const LOOK_BACK_MESSAGES = 32
const KEPT_LENGTH_MAX = 1024 * 1024

/** What a page of messages shows: the range of seqs of it and all following pages. */
export interface MessagePageRequest {
  project_id: string
  format: MessageFormat
  /** undefined: the whole session. */
  limit: number | undefined
  time_desc: boolean
  with_events: boolean
  range: { above_seq: number; below_seq: number }
}

interface Kept {
  id: string
  meta: string
  /** Items that the message became: one, more if the format has one message per tool result, none if it joined another. */
  items: number
}

type Walk = (view: EntryView, page: Partial<ReadPage>) => AsyncGenerator<ReadEntry[]>

/**
 * A page of messages as JSON, in chunks. `items`, `ids` and `metas` are parallel lists, so a long page is walked once
 * for each, and only counts are kept between walks. The walks agree because entries never move or disappear.
 */
export async function* messagePage(
  { log, thread }: { log: LogReader; thread: WorkThread },
  request: MessagePageRequest,
  cursors: Cursors,
): AsyncGenerator<string> {
  const { project_id, time_desc, range } = request
  const whole = { time_desc, limit: UNLIMITED, ...range }
  const walk: Walk = (view, page) => log.read(view, { ...whole, ...page })
  const renderer = new PageRenderer(thread, project_id, request.format)
  const page = new MessageWalk(request, walk, renderer)
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
  const { next_seq, tokens, last_id } = page
  // Both bounds are exclusive: the next page begins with the message that this one left out.
  const next_cursor =
    next_seq === undefined ? '' : cursors.write(String(time_desc ? next_seq + 1 : next_seq - 1))
  yield `],"has_more":${next_cursor !== ''},"next_cursor":"${next_cursor}","edit_at_message_id":"${last_id}","this_time_tokens":${tokens}`
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
  /** The newest message of the page; empty where there is none. */
  last_id = ''
  private last_seq = 0
  /** The first message of the next page. */
  next_seq: number | undefined
  private kept: Kept[] | undefined = []
  private keptLength = 0
  private readonly severalItems = new Map<number, number>()
  /** The renderer has seen the messages before the next ones. */
  private following = false
  private separator = ''

  constructor(
    private readonly request: MessagePageRequest,
    private readonly walk: Walk,
    private readonly renderer: PageRenderer,
  ) {}

  async *items(): AsyncGenerator<string> {
    const { limit = UNLIMITED, format } = this.request
    const turns = new MessageTurns(format)
    let shown = 0
    const probe = Math.min(limit + 1, UNLIMITED)
    for await (const messages of this.walk('message', { kind: 'message', limit: probe })) {
      const fitting = messages.slice(0, limit - shown)
      shown += fitting.length
      yield* this.write(turns.add(fitting))
      const next = messages[fitting.length]
      if (!next) continue
      this.next_seq = (turns.takeCut(next, shown)?.[0] ?? next).seq
      break
    }
    yield* this.write(turns.end())
  }

  private async *write(turns: ReadEntry[][]): AsyncGenerator<string> {
    if (turns.length === 0) return
    const rendered = await this.render(turns)
    yield this.separator + rendered.flat().join(',')
    this.separator = ','
    for (const [index, turn] of turns.entries()) {
      // The items of a turn are those of its oldest message.
      const oldest = this.request.time_desc ? turn.length - 1 : 0
      for (const [at, message] of turn.entries())
        this.note(message, at === oldest ? rendered[index]!.length : 0)
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
    if (seq > this.last_seq) {
      this.last_seq = seq
      this.last_id = id!
    }
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
      const texts = this.kept.map((message) => times(message.items, of(message)))
      yield texts.filter((text) => text !== '').join(',')
      return
    }
    const pieces = this.walk(view, { kind: 'message', ...this.ownBounds() })
    yield* joined(pieces, ({ seq, json }) => times(this.severalItems.get(seq) ?? 1, json))
  }

  /**
   * The items that each turn becomes. A conversion links tool calls to their results, so it reads the session in
   * log order, starting some messages before the page.
   */
  private async render(turns: ReadEntry[][]): Promise<string[][]> {
    const { format, time_desc } = this.request
    if (turns.every((turn) => turn.every((message) => message.format === format))) {
      this.following = false
      return turns.map((turn) => turn.map(({ json }) => json))
    }
    const chronological = time_desc ? turns.toReversed().map((turn) => turn.toReversed()) : turns
    if (!this.following || time_desc) {
      const below_seq = chronological[0]![0]!.seq
      const ahead = {
        kind: 'message',
        above_seq: 0,
        below_seq,
        time_desc: true,
        limit: LOOK_BACK_MESSAGES,
      } as const
      for await (const before of this.walk('message', ahead)) {
        await this.renderer.render(before.toReversed().map((message) => storedTurn([message])))
      }
    }
    this.following = true
    const rendered = await this.renderer.render(chronological.map(storedTurn))
    return time_desc ? rendered.toReversed() : rendered
  }
}

async function* joined(
  pieces: AsyncGenerator<ReadEntry[]>,
  write: (entry: ReadEntry) => string,
): AsyncGenerator<string> {
  let separator = ''
  for await (const entries of pieces) {
    const texts = entries.map(write).filter((text) => text !== '')
    if (texts.length === 0) continue
    yield separator + texts.join(',')
    separator = ','
  }
}
