import { setImmediate as turn } from 'node:timers/promises'
import { type AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import type { LogPosition } from '@annals/kits/lists/log_position.js'
import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { inOrders, type WorkThread } from '@annals/kits/threads/work_thread.js'
import { type MessageFormat, mayReferToBlobs } from '@annals/messages'
import { MessageTurns, storedSeq, storedTurn } from '@annals/messages/context'
import { type FitMessage, type FitOptions, FitToSend, type Reasoning } from '@annals/messages/fit'
import { findBlobs } from '../../blobs/blob_store.js'
import type { ReadEntry } from '../read/entry_columns.js'
import { type LogReader, type ReadPage, UNLIMITED } from '../read/read_log.js'
import type { EntryView } from '../read/read_queries.js'
import { type Editing, editsOf, type PageEdits } from './message_edits.js'
import { blobLength, type PageRenderer, requireKnown } from './page_renderer.js'

/** A list that can be sent. `ids` and `items` run in step. */
export interface FittedList {
  items: string[]
  ids: string[]
  /** The answer's fields beside them, as JSON: a message may have thousands of calls, and a note for each. */
  notes: string
  tokens_left_out: number
  sent_seqs: number[]
}

export function fittedList(list: FitToSend): FittedList {
  const { items, omitted, added, names, tokens_left_out, sent_seqs } = list.finish()
  // An omission of a kind is named once for each message.
  const left = new Set(omitted.map((one) => JSON.stringify(one)))
  return {
    items: items.map(({ json }) => json),
    ids: items.map(({ id }) => id),
    notes: `"omitted":[${[...left].join(',')}],${JSON.stringify({ added, names }).slice(1, -1)}`,
    tokens_left_out,
    sent_seqs,
  }
}

/** Most characters of blobs made fit on the event loop, in pieces of this length; longer pages go to the work thread. */
const INLINE_LENGTH_MAX = 128 * 1024
const PIECE_LENGTH_MAX = 32 * 1024

/** As PostgreSQL writes it, or an adapter that stored the message in parts. */
const REFERENCE = /"annals_blob": ?"([0-9a-f]{64})"/g
/** Anthropic takes 5 MiB of base64. */
const IMAGE_BYTES_MAX = (5 * 1024 * 1024 * 3) / 4

let lists = 0

/**
 * Makes messages, oldest first, fit to be sent in a format. It takes time and memory for these, however long the session is.
 * @throws AnnalsError unavailable, if a newer version stored a message in a format that is unknown here
 */
export async function fitMessages(
  thread: WorkThread,
  tenant: Tenant,
  format: MessageFormat,
  messages: FitMessage[],
  asked: FitOptions,
): Promise<FittedList> {
  for (const { format } of messages) requireKnown(format)
  const options = { ...asked, too_large: await tooLarge(tenant, format, messages) }
  const length = messages.reduce((sum, { blob }) => sum + blob.length, 0)
  if (length > INLINE_LENGTH_MAX) return fitOnThread(thread, tenant.project_id, format, messages, options)
  const list = new FitToSend(format, options)
  for (const [index, piece] of inOrders(messages, blobLength, PIECE_LENGTH_MAX).entries()) {
    if (index > 0) await turn()
    for (const message of piece) list.add(message)
  }
  return fittedList(list)
}

/** Hashes of what the messages refer to and Anthropic refuses as a picture. */
async function tooLarge(tenant: Tenant, format: MessageFormat, messages: FitMessage[]): Promise<string[]> {
  if (format !== 'anthropic') return []
  const hashes = new Set<string>()
  for (const [index, piece] of inOrders(messages, blobLength).entries()) {
    if (index > 0) await turn()
    for (const { blob } of piece) for (const [, sha256] of blob.matchAll(REFERENCE)) hashes.add(sha256!)
  }
  if (hashes.size === 0) return []
  const blobs = await findBlobs(tenant, [...hashes])
  return [...blobs.values()].filter(({ bytes }) => bytes > IMAGE_BYTES_MAX).map(({ sha256 }) => sha256)
}

async function fitOnThread(
  thread: WorkThread,
  project_id: string,
  format: MessageFormat,
  messages: FitMessage[],
  options: FitOptions,
): Promise<FittedList> {
  const list = ++lists
  try {
    for (const piece of inOrders(messages, blobLength))
      await thread.run(project_id, 'addToList', list, format, options, piece)
    return await thread.run(project_id, 'finishList', list)
  } finally {
    thread.tell('endList', list)
  }
}

/** A page of messages. `range`: the seqs of it and all following pages. */
export interface MessagePageRequest {
  project_id: string
  format: MessageFormat
  /** undefined: the whole session. */
  limit: number | undefined
  /** Pages go from the newest messages to the oldest; each page itself reads oldest to newest. */
  time_desc: boolean
  with_events: boolean
  editing: Editing | undefined
  fit: PageFit | undefined
  range: { above_seq: number; below_seq: number }
}

export interface PageFit {
  reasoning: Reasoning | undefined
  database: Queryable
  /** Holds the memory for so many characters of messages. */
  hold: (length: number) => Promise<void>
}

/** Limits of a list that is made fit, which takes all of it at once. */
const FIT_MESSAGES_MAX = 10_000
const FIT_LENGTH_MAX = 32 * 1024 * 1024

/** Up to so many messages' ids and metas, and so many characters of metas, are kept while the items are written. */
const KEPT_MESSAGES_MAX = 1_000
/** Messages before a page that are searched for the calls that its tool results answer. */
const LOOK_BACK_MESSAGES = 32
const KEPT_LENGTH_MAX = 1024 * 1024

interface Kept {
  id: string
  meta: string
  /** Items that the message became: one, more if the format has one message per tool result, none if it joined another. */
  items: number
}

/** The walks over the messages of one page. `items` comes first; the others rely on what it found. */
export class MessageWalk {
  tokens = 0
  /** The newest message of the page; empty where there is none. */
  last_id = ''
  /** Its position, where that was read with it. */
  last: LogPosition | undefined
  /** The first message of the next page. */
  next_seq: number | undefined
  private kept: Kept[] | undefined = []
  private keptLength = 0
  private readonly severalItems = new Map<number, number>()
  /** The renderer has seen the messages before the next ones. */
  private following = false
  private separator = ''
  /** Of pages that go backward: the newest message of the next page; 0 where there is none. */
  private oldest_seq: number | undefined
  private edits: PageEdits | undefined

  constructor(
    private readonly log: LogReader,
    private readonly request: MessagePageRequest,
    private readonly renderer: PageRenderer,
  ) {}

  /** Reads entries of the page's range, oldest first unless asked otherwise. */
  walk(view: EntryView, page: Partial<ReadPage>): AsyncGenerator<ReadEntry[]> {
    return this.log.read(view, { time_desc: false, limit: UNLIMITED, ...this.request.range, ...page })
  }

  /** Plans how the messages are edited, if at all: it comes before the items. @throws AnnalsError invalid_request */
  async plan(thread: WorkThread): Promise<void> {
    const { editing, project_id } = this.request
    if (editing) this.edits = await editsOf(this.turns(), thread, project_id, editing)
  }

  async *items(): AsyncGenerator<string> {
    for await (const turns of this.turns()) yield* this.write(this.withoutDropped(turns))
  }

  /**
   * The page as a list that can be sent: the page alone is looked at.
   * @throws AnnalsError invalid_request if it is too long
   */
  async fitted(
    thread: WorkThread,
    { reasoning, database, hold }: PageFit,
  ): Promise<FittedList & { metas: string[] }> {
    const messages: ReadEntry[] = []
    let length = 0
    for await (const turns of this.turns())
      for (const message of this.withoutDropped(turns).flat()) {
        messages.push(message)
        this.note(message, 0)
        length += message.json.length + message.meta!.length
        if (messages.length > FIT_MESSAGES_MAX || length > FIT_LENGTH_MAX) throw tooMany()
        await hold(length)
      }
    const stored = messages.map((message) => {
      const { id, parent_id, format, blob, seq, tokens } = storedSeq(message)
      const shown = { edit: this.edits?.edits.get(seq), tokens: this.edits?.tokens.get(seq) ?? tokens }
      return { id, parent_id: parent_id ?? null, format, blob, seq, ...shown }
    })
    const { project_id, format } = this.request
    const list = await fitMessages(thread, { database, project_id }, format, stored, { reasoning })
    this.tokens -= list.tokens_left_out
    const metas = new Map(messages.map(({ id, meta }) => [id!, meta!]))
    return { ...list, metas: list.ids.map((id) => metas.get(id)!) }
  }

  private withoutDropped(turns: ReadEntry[][]): ReadEntry[][] {
    const { dropped } = this.edits ?? {}
    if (!dropped || dropped.size === 0) return turns
    const isShown = ({ seq }: ReadEntry) => {
      if (!dropped.has(seq)) return true
      this.severalItems.set(seq, 0)
      return false
    }
    return turns.map((turn) => turn.filter(isShown)).filter((turn) => turn.length > 0)
  }

  /** The page's messages, oldest first, as the turns that become items; they tell where the next page begins. */
  private turns(): AsyncGenerator<ReadEntry[][]> {
    const { limit, time_desc, format } = this.request
    const turns = new MessageTurns<ReadEntry>(format)
    return time_desc && limit !== undefined
      ? this.turnsBackward(turns, limit)
      : this.turnsForward(turns, limit ?? UNLIMITED)
  }

  private async *turnsForward(turns: MessageTurns<ReadEntry>, limit: number): AsyncGenerator<ReadEntry[][]> {
    let shown = 0
    const probe = Math.min(limit + 1, UNLIMITED)
    for await (const messages of this.walk(this.view, { kind: 'message', limit: probe })) {
      const fitting = messages.slice(0, limit - shown)
      shown += fitting.length
      yield turns.add(fitting)
      const next = messages[fitting.length]
      if (!next) continue
      this.next_seq = (turns.takeCut(next, shown)?.[0] ?? next).seq
      break
    }
    yield turns.end()
  }

  /** The first message that is read is the newest of the next page: so it shows whether a turn begins on that page. */
  private async *turnsBackward(turns: MessageTurns<ReadEntry>, limit: number): AsyncGenerator<ReadEntry[][]> {
    this.oldest_seq ??= await this.log.nthNewestMessage(limit + 1, this.request.range)
    const { oldest_seq } = this
    let isNext = oldest_seq > 0
    const above_seq = isNext ? oldest_seq - 1 : this.request.range.above_seq
    for await (const messages of this.walk(this.view, { kind: 'message', above_seq })) {
      const ended = turns.add(messages)
      if (isNext && ended.length > 0) {
        this.next_seq = ended.shift()!.at(-1)!.seq
        isNext = false
      }
      yield ended
    }
    const ended = turns.end()
    if (isNext) this.next_seq = ended[0]?.[0]?.seq ?? oldest_seq
    // A turn that is longer than the page is cut.
    yield isNext ? ended.map((turn) => turn.slice(1)).filter((turn) => turn.length > 0) : ended
  }

  private async *write(turns: ReadEntry[][]): AsyncGenerator<string> {
    if (turns.length === 0) return
    const rendered = await this.render(turns)
    const items = rendered.flat()
    if (items.length > 0) {
      yield this.separator + items.join(',')
      this.separator = ','
    }
    for (const [index, turn] of turns.entries()) {
      // The items of a turn are those of its oldest message.
      for (const [at, message] of turn.entries()) this.note(message, at === 0 ? rendered[index]!.length : 0)
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
    const { seq, id, meta, tokens, created_at } = message
    this.tokens += this.edits?.tokens.get(seq) ?? tokens!
    this.last_id = id!
    this.last = created_at === undefined ? undefined : { seq, created_at }
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
    const times = (items: number, text: string) =>
      items === 1 ? write(text) : Array<string>(items).fill(write(text)).join(',')
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
    const { format } = this.request
    // The neutral form shows a message with all of its fields, so it is written anew.
    const isAsStored = ({ format: own, json, seq }: ReadEntry) =>
      own === format && !mayReferToBlobs(json) && !this.edits?.edits.has(seq)
    if (format !== 'acontext' && turns.every((turn) => turn.every(isAsStored))) {
      this.following = false
      return turns.map((turn) => turn.map(({ json }) => json))
    }
    if (!this.following) {
      const below_seq = turns[0]![0]!.seq
      const ahead = { above_seq: 0, below_seq, time_desc: true, limit: LOOK_BACK_MESSAGES }
      for await (const before of this.walk('message', { kind: 'message', ...ahead })) {
        await this.renderer.render(before.toReversed().map((message) => storedTurn([message])))
      }
    }
    this.following = true
    return this.renderer.render(turns.map((turn) => storedTurn(turn, this.edits)))
  }

  private get view(): EntryView {
    return this.request.format === 'acontext' && !this.request.fit ? 'whole_message' : 'message'
  }
}

function tooMany(): AnnalsError {
  return invalidRequest(
    `Query parameter fit looks at no more than ${FIT_MESSAGES_MAX} messages and ${FIT_LENGTH_MAX} bytes at once. Send a limit, or use GET /session/{id}/context.`,
  )
}

export async function* joined(
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
