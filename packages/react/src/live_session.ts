import {
  type Annals,
  AnnalsError,
  type InboxInput,
  type NewEntry,
  type RunFrame,
  type RunnerRequest,
  type Session,
  type TimelineItem,
} from '@annals/client'
import { Follower, pause } from './follower.js'

/** Entries that a timeline begins with. */
export const LAST_DEFAULT = 200
const APPEND_PAUSE_MS = 2_000

/** An entry that the page has appended and the timeline does not have yet. */
export interface PendingEntry {
  /** Its id, also once it is stored. */
  id: string
  entry: NewEntry
  /**
   * `sending`: it is on its way, however long the network is away; `stored`: its `seq` is known, and the timeline will
   * have it in a moment; `failed`: the service refused it.
   */
  state: 'sending' | 'stored' | 'failed'
  seq?: number
  /** Why it failed, or why it is not sent yet. */
  error?: Error
}

export interface LiveState {
  session: Session | undefined
  /** In order of `seq`. */
  entries: readonly TimelineItem[]
  /** The log has entries before the first of `entries`. */
  has_earlier: boolean
  pending: readonly PendingEntry[]
  inputs: readonly InboxInput[]
  requests: readonly RunnerRequest[]
  lease: (RunFrame & { event: 'lease' })['data'] | undefined
  /** `offline`: it reconnects by itself; `refused`: the service said no, see `error`. */
  status: 'connecting' | 'live' | 'offline' | 'refused'
  error: Error | undefined
}

export const NOTHING: LiveState = {
  session: undefined,
  entries: [],
  has_earlier: false,
  pending: [],
  inputs: [],
  requests: [],
  lease: undefined,
  status: 'connecting',
  error: undefined,
}

/** What the hooks of one session show, followed once for all of them. Each state is an object of its own. */
export class LiveSession {
  readonly parts: { session: Follower; log: Follower; run: Follower }
  /** How many components use it. */
  components = 0
  #state = NOTHING
  #published = NOTHING
  #is_due = false
  readonly #listeners = new Set<() => void>()
  /** The ids of `entries`. */
  readonly #ids = new Set<string>()
  #has_begun = false
  #place = 0
  #is_sending = false
  readonly #annals: Annals
  readonly #session_id: string
  readonly #last: number

  constructor(annals: Annals, session_id: string, last = LAST_DEFAULT) {
    this.#annals = annals
    this.#session_id = session_id
    this.#last = last
    const failed = (error: unknown) => this.#failed(error)
    this.parts = {
      session: new Follower((signal) => this.#readSession(signal), failed),
      log: new Follower((signal) => this.#followLog(signal), failed),
      run: new Follower((signal) => this.#followRun(signal), failed),
    }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly state = (): LiveState => this.#published

  get isSending(): boolean {
    return this.#is_sending
  }

  /** @throws AnnalsError */
  readonly loadEarlier = async (): Promise<void> => {
    const first = this.#state.entries[0]
    if (!first || !this.#state.has_earlier) return
    const earlier = await this.#read(first.seq, undefined)
    if (this.#state.entries[0] !== first) return
    for (const { id } of earlier) this.#ids.add(id)
    this.#change({ entries: [...earlier, ...this.#state.entries], has_earlier: (earlier[0]?.seq ?? 1) > 1 })
  }

  /** Shows an entry at once and stores it once. Entries are sent one after another. Returns the entry's id. */
  readonly append = (entry: NewEntry): string => {
    const id = entry.id ?? newId()
    this.#change({ pending: [...this.#state.pending, { id, entry: { ...entry, id }, state: 'sending' }] })
    void this.#send()
    return id
  }

  /** Sends an entry again that failed. */
  readonly retry = (id: string): void => {
    const failed = this.#state.pending.find((one) => one.id === id && one.state === 'failed')
    if (!failed) return
    this.#setPending(id, { id, entry: failed.entry, state: 'sending' })
    void this.#send()
  }

  /** Forgets an entry that failed. */
  readonly discard = (id: string): void => {
    const { pending } = this.#state
    this.#change({ pending: pending.filter((one) => one.id !== id || one.state !== 'failed') })
  }

  async #readSession(signal: AbortSignal): Promise<void> {
    const session = await this.#annals.sessions.get(this.#session_id, { signal })
    // What the log's connection says of itself stands.
    this.#change(this.parts.log.isUsed ? { session } : { session, status: 'live', error: undefined })
    await pause(Number.POSITIVE_INFINITY, signal)
  }

  async #followLog(signal: AbortSignal): Promise<void> {
    if (!this.#has_begun) {
      const entries = await this.#read(undefined, signal)
      for (const { id } of entries) this.#ids.add(id)
      this.#has_begun = true
      this.#change({ entries, has_earlier: (entries[0]?.seq ?? 1) > 1 })
      this.#settle(entries)
    }
    const after = this.#state.entries.at(-1)
    const on_connect = () => this.#change({ status: 'live', error: undefined })
    const on_disconnect = (error: AnnalsError) => this.#change({ status: 'offline', error })
    const options = { after, signal, on_connect, on_disconnect }
    for await (const entry of this.#annals.sessions.tail(this.#session_id, options)) {
      this.#ids.add(entry.id)
      this.#change({ entries: [...this.#state.entries, entry] })
      this.#settle([entry])
    }
  }

  /** Up to `last` entries before a seq, or the newest, in order. */
  async #read(before: number | undefined, signal: AbortSignal | undefined): Promise<TimelineItem[]> {
    const read: TimelineItem[] = []
    const limit = Math.min(this.#last, 200)
    const query =
      before === undefined ? { time_desc: true } : { after_seq: Math.max(before - 1 - this.#last, 0) }
    for await (const entry of this.#annals.sessions.timeline(
      this.#session_id,
      { limit, ...query },
      { signal },
    )) {
      if (before !== undefined && entry.seq >= before) break
      read.push(entry)
      if (read.length === this.#last) break
    }
    return before === undefined ? read.reverse() : read
  }

  async #followRun(signal: AbortSignal): Promise<void> {
    for await (const frame of this.#annals.runs.follow(this.#session_id, { after: this.#place, signal })) {
      this.#place = frame.place
      if (frame.event === 'lease') this.#change({ lease: frame.data })
      else if (frame.event === 'request')
        this.#change({ requests: replaced(this.#state.requests, frame.data, frame.data.state === 'open') })
      else {
        // What was applied is an entry, and its frame may come later than it.
        const waits = frame.data.state === 'pending' && !this.#ids.has(frame.data.id)
        this.#change({ inputs: replaced(this.#state.inputs, frame.data, waits) })
      }
    }
  }

  async #send(): Promise<void> {
    if (this.#is_sending) return
    this.#is_sending = true
    for (;;) {
      const next = this.#state.pending.find(({ state }) => state === 'sending')
      if (!next) break
      try {
        const options = { idempotency_key: next.id }
        const { items } = await this.#annals.sessions.appendBatch(this.#session_id, [next.entry], options)
        const { seq } = items[0]!
        // Without a timeline there is nothing to wait for.
        const shows = this.parts.log.isUsed && !this.#ids.has(next.id)
        this.#setPending(next.id, shows ? { ...next, state: 'stored', seq } : undefined)
      } catch (thrown) {
        const error = thrown as Error
        const again = mayHelp(error)
        this.#setPending(next.id, { ...next, state: again ? 'sending' : 'failed', error })
        if (again) await pause(APPEND_PAUSE_MS, new AbortController().signal)
      }
    }
    this.#is_sending = false
  }

  /** Entries of the log are no longer pending, and no longer in the inbox. */
  #settle(entries: readonly TimelineItem[]): void {
    const isAmong = ({ id }: { id: string }) => entries.some((entry) => entry.id === id)
    const { pending, inputs } = this.#state
    if (pending.some(isAmong)) this.#change({ pending: pending.filter((one) => !isAmong(one)) })
    if (inputs.some(isAmong)) this.#change({ inputs: inputs.filter((one) => !isAmong(one)) })
  }

  #setPending(id: string, changed: PendingEntry | undefined): void {
    const pending = this.#state.pending.flatMap((one) => (one.id === id ? (changed ?? []) : one))
    this.#change({ pending })
  }

  #failed(thrown: unknown): boolean {
    const error = thrown as Error
    if (error instanceof AnnalsError && DIVERGED.has(error.error)) {
      // The log is another one, as after a restore: all that is shown is read again.
      this.#has_begun = false
      this.#place = 0
      this.#ids.clear()
      const { session, pending } = this.#state
      this.#change({ ...NOTHING, session, pending })
      this.parts.run.restart()
      return true
    }
    const again = mayHelp(error)
    this.#change({ status: again ? 'offline' : 'refused', error })
    return again
  }

  /** Many changes in one turn of the page are shown as one. */
  #change(change: Partial<LiveState>): void {
    this.#state = { ...this.#state, ...change }
    if (this.#is_due) return
    this.#is_due = true
    setTimeout(() => {
      this.#is_due = false
      this.#published = this.#state
      for (const listener of [...this.#listeners]) listener()
    })
  }
}

/** Errors of a tail whose log is no longer the one that it began with. */
const DIVERGED: ReadonlySet<string> = new Set(['log_diverged', 'seq_ahead'])

/** Whether the same request may succeed later. */
function mayHelp(error: Error): boolean {
  if (!(error instanceof AnnalsError)) return false
  return (
    error.status >= 500 || error.status === 429 || (error.status === 0 && error.error !== 'invalid_request')
  )
}

/** A list with another state of one item, which keeps its place, or without it. */
function replaced<Item extends { id: string }>(items: readonly Item[], item: Item, stays: boolean): Item[] {
  const others = items.filter(({ id }) => id !== item.id)
  if (!stays) return others
  return others.length === items.length
    ? [...items, item]
    : items.map((one) => (one.id === item.id ? item : one))
}

/** A UUID. Not `randomUUID`, which browsers have only on https pages. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
