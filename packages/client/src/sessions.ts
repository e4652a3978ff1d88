import { noAnswer } from './annals_error.js'
import { List, type Page } from './list.js'
import type {
  AppendOptions,
  BatchOptions,
  CallOptions,
  CreateOptions,
  MessageOptions,
  WriteOptions,
} from './options.js'
import { SessionConfigs } from './session_configs.js'
import { type TailOptions, tail } from './tail.js'
import type { Transport } from './transport.js'
import type {
  AppendedEntries,
  AppendedToSessions,
  AppendToSessionsQuery,
  Context,
  ContextQuery,
  CopiedSession,
  EventsQuery,
  ExportQuery,
  Fork,
  JsonObject,
  LatestQuery,
  MergedMeta,
  Message,
  MessagePage,
  MessagesQuery,
  NewCompaction,
  NewEntry,
  NewEvent,
  NewMessage,
  NewSession,
  Proof,
  RetractedEntries,
  Retraction,
  Session,
  SessionAppend,
  SessionChange,
  SessionEvent,
  SessionsQuery,
  TimelineItem,
  TimelineQuery,
  TokenCounts,
} from './types.js'
import { onAbort } from './waiting.js'

/** By default the API sends a whole session as one page; walking a list should not need the memory for that. */
const MESSAGE_PAGE_LIMIT = 200

/** Sessions and their logs. */
export class Sessions {
  readonly configs: SessionConfigs
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
    this.configs = new SessionConfigs(transport)
  }

  /**
   * The project's sessions in order of `created_at`, or of their last activity. A project that asks for the latter for the
   * first time may get 503 `being_prepared`.
   */
  list(query: SessionsQuery = {}, options?: CallOptions): List<Session> {
    return this.#list(['session'], query, options)
  }

  create(session: NewSession = {}, options?: CreateOptions): Promise<Session> {
    return this.#transport.call({ method: 'POST', path: ['session'], body: session, keyed: true }, options)
  }

  get(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#transport.call({ method: 'GET', path: ['session', session_id] }, options)
  }

  /** Sets when the session expires, or with null that it does not. */
  update(session_id: string, change: SessionChange, options?: CallOptions): Promise<Session> {
    return this.#transport.call({ method: 'PATCH', path: ['session', session_id], body: change }, options)
  }

  /** Deletes a session with its log, and the sessions below it. */
  async delete(session_id: string, options?: CallOptions): Promise<void> {
    const done_when = 'session_not_found'
    await this.#transport.call({ method: 'DELETE', path: ['session', session_id], done_when }, options)
  }

  /**
   * Copies a session with its log; order and seqs are kept. A million entries take about a minute: set a `timeout_ms`
   * for that, or an `idempotency_key` to call again with; the service then finishes the copy.
   */
  copy(session_id: string, options?: CreateOptions): Promise<CopiedSession> {
    return this.#transport.call(
      { method: 'POST', path: ['session', session_id, 'copy'], keyed: true },
      options,
    )
  }

  /** Copies a session up to a seq, with a user and configs of its own if given: a fork. Otherwise as `copy`. */
  fork(session_id: string, fork: Fork, options?: CreateOptions): Promise<CopiedSession> {
    return this.#transport.call(
      { method: 'POST', path: ['session', session_id, 'copy'], body: fork, keyed: true },
      options,
    )
  }

  /** Appends an event. Resolves once it is durable. */
  append(session_id: string, event: NewEvent, options?: AppendOptions): Promise<SessionEvent> {
    return this.#append(['session', session_id, 'events'], event, options)
  }

  /** Appends a message in its provider's own format, with its files if it has any. Resolves once it is durable. */
  appendMessage(
    session_id: string,
    message: NewMessage,
    { files, ...options }: MessageOptions = {},
  ): Promise<Message> {
    const path = ['session', session_id, 'messages']
    if (!files) return this.#append(path, message, options)
    const form = new FormData()
    form.set('payload', this.#transport.stringify(message))
    for (const [name, file] of Object.entries(files)) form.append(name, file)
    return this.#transport.call({ method: 'POST', path, form, keyed: true }, options)
  }

  /**
   * Appends up to 1,000 entries with consecutive seqs, after the inputs that it applies, all or none. Resolves once they
   * are durable.
   */
  appendBatch(
    session_id: string,
    entries: NewEntry[],
    { apply, ...options }: BatchOptions = {},
  ): Promise<AppendedEntries> {
    const body = { entries: apply && entries.length === 0 ? undefined : entries, apply }
    return this.#append(['session', session_id, 'entries'], body, options)
  }

  /**
   * Appends up to 1,000 entries to up to 20 sessions, and merges each `configs_patch` into its session's configs: all or
   * nothing. Resolves once everything is durable. `with_items: false`: the answer has `seqs` in place of the entries.
   */
  appendToSessions(
    appends: SessionAppend[],
    { with_items, ...options }: CreateOptions & AppendToSessionsQuery = {},
  ): Promise<AppendedToSessions> {
    return this.#transport.call(
      { method: 'POST', path: ['entries'], query: { with_items }, body: { appends }, keyed: true },
      options,
    )
  }

  /** The events of a session, in order of `seq`. */
  events(session_id: string, query: EventsQuery = {}, options?: CallOptions): List<SessionEvent> {
    return this.#list(['session', session_id, 'events'], query, options)
  }

  /** The messages of a session in one format, in order of `seq`. `Item` is that format's type. */
  messages<Item = JsonObject>(
    session_id: string,
    query: MessagesQuery = {},
    options?: CallOptions,
  ): List<Item, MessagePage<Item>> {
    return this.#list(['session', session_id, 'messages'], { limit: MESSAGE_PAGE_LIMIT, ...query }, options)
  }

  /** The messages and events of a session in one list, in order of `seq`. */
  timeline(session_id: string, query: TimelineQuery = {}, options?: CallOptions): List<TimelineItem> {
    return this.#list(['session', session_id, 'timeline'], query, options)
  }

  /** The stored entries after `after`, and then every new entry as it is stored, across broken connections. */
  tail(session_id: string, options: TailOptions = {}): AsyncGenerator<TimelineItem, void, undefined> {
    return tail(this.#transport, ['session', session_id, 'timeline'], options)
  }

  /** The newest entry of each key, in order of keys: of one `key`, of those with a `key_prefix`, or of all. */
  latest(session_id: string, query: LatestQuery = {}, options?: CallOptions): List<TimelineItem> {
    return this.#list(['session', session_id, 'latest'], query, options)
  }

  /**
   * Retracts entries by `ids`, `after_seq` or `last`, and returns them with the event that says so. Messages, contexts
   * and latest entries leave them out; nothing is deleted. `{ last: 1 }` is an atomic pop: no two callers get the same
   * entry. `entries` are appended in the same commit, and so replace what is retracted.
   */
  retract(session_id: string, which: Retraction, options?: AppendOptions): Promise<RetractedEntries> {
    return this.#append(['session', session_id, 'retractions'], which, options)
  }

  /**
   * Lets `summary` stand for the entries up to `to_seq` in contexts, and returns the event that says so. The log stays as
   * it is; retracting an entry that is covered takes the summary out of the next context.
   */
  compact(session_id: string, compaction: NewCompaction, options?: AppendOptions): Promise<SessionEvent> {
    return this.#append(['session', session_id, 'compactions'], compaction, options)
  }

  /** An entry with what proves it. To check it, keep the answer's text: numbers of JavaScript lose digits. */
  proof(session_id: string, seq: number, options?: CallOptions): Promise<Proof> {
    return this.#transport.call(
      { method: 'GET', path: ['session', session_id, 'proof'], query: { seq } },
      options,
    )
  }

  /** Merges into a message's meta; null deletes a key. Returns the merged meta. */
  patchMessageMeta(
    session_id: string,
    message_id: string,
    meta: object,
    options?: WriteOptions,
  ): Promise<MergedMeta> {
    return this.#transport.call(
      { method: 'PATCH', path: ['session', session_id, 'messages', message_id, 'meta'], body: { meta } },
      options,
    )
  }

  /**
   * The messages to send to a model next. Send the answer's `pin` with the next call, so that the prefix stays the same
   * until `max_tokens` is passed again.
   */
  context<Item = JsonObject>(
    session_id: string,
    query: ContextQuery = {},
    options?: CallOptions,
  ): Promise<Context<Item>> {
    return this.#transport.call({ method: 'GET', path: ['session', session_id, 'context'], query }, options)
  }

  /**
   * The whole session as a file for another tool, piece by piece: `atif`, `openai`, `anthropic`, or `jsonl`. What the
   * format has no form for is counted at the end of the file. Only a stream that ends without an error is whole.
   */
  async *export(
    session_id: string,
    query: ExportQuery,
    { signal }: Pick<CallOptions, 'signal'> = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const call = { method: 'GET' as const, path: ['session', session_id, 'export'], query }
    const accept = 'application/json, application/x-ndjson'
    const reading = new AbortController()
    const unfollow = onAbort(signal, (reason) => reading.abort(reason))
    try {
      const response = await this.#transport.open(call, { accept }, reading.signal)
      const reader = response.body!.getReader()
      for (;;) {
        const { done, value } = await reader.read().catch((error) => {
          throw signal?.aborted ? signal.reason : noAnswer('The export', error)
        })
        if (done) return
        yield value
      }
    } finally {
      unfollow()
      reading.abort()
    }
  }

  tokenCounts(session_id: string, options?: CallOptions): Promise<TokenCounts> {
    return this.#transport.call({ method: 'GET', path: ['session', session_id, 'token_counts'] }, options)
  }

  #append<Data>(path: string[], body: object, options?: AppendOptions): Promise<Data> {
    return this.#transport.call({ method: 'POST', path, body, keyed: true }, options)
  }

  #list<Item, P extends Page<Item> = Page<Item>>(path: string[], query: object, options?: CallOptions) {
    return new List<Item, P>((cursor) =>
      this.#transport.call<P>({ method: 'GET', path, query: cursor ? { ...query, cursor } : query }, options),
    )
  }
}
