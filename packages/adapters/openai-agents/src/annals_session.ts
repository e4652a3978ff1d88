import { createHash, randomUUID } from 'node:crypto'
import {
  answersTo,
  appendToKeyed,
  askForCalls,
  createdOnFirstUse,
  createSession,
  cutIntoBatches,
  escapeJson,
  idempotencyKey,
  ifFound,
  isError,
  type KeyedNewSession,
  PART_TYPE,
  readEventData,
  readWholeMessage,
  reasonOf,
  splitLargeEvent,
  splitLargeMessage,
  stableId,
  UnstorableEntries,
} from '@annals/adapter-kit'
import type {
  Annals,
  HeldLease,
  JsonObject,
  LeaseOptions,
  NewEntry,
  RunnerRequest,
  TimelineItem,
} from '@annals/client'
import {
  type AgentInputItem,
  RunState,
  type SessionHistoryRewriteArgs,
  type SessionHistoryRewriteAwareSession,
  type SessionHistoryTransaction,
  type SessionHistoryTransactionArgs,
  type SessionHistoryTransactionAwareSession,
  UserError,
} from '@openai/agents-core'
import { isSame, itemOf, responsesItemOf } from './responses_items.js'
import { type AnyAgent, type AnyRun, callIdOf, RUN_KEY, RUN_TYPE, waitingCalls } from './waiting_run.js'

/** Most messages of one page, and most that one request retracts. */
const MESSAGES_MAX = 1_000
/** Most entries that one request retracts by their ids. */
const IDS_MAX = 200
/** The type of an item that replaces all items before it. */
const COMPACTION = 'compaction'
/** In the meta of one that replaced the history: what it sums up is not read any more. */
const BEGINS = 'openai_agents_begins'
/** The event that says that an operation was applied; its key is made of the operation's id. */
const OPERATION_TYPE = 'openai_agents.operation'
/** Others who write to the session make a change start over; each time, one of them has made progress. */
const ATTEMPTS_MAX = 50

export interface AnnalsSessionOptions {
  annals: Annals
  /** The SDK's id for the conversation; any string. The session's own id is made of it. */
  sessionId: string
  /** Whose session it is: its data goes when the user is erased. */
  user?: string | undefined
  /** Configs with which the session is created, in addition to its `openai_agents_session`. */
  configs?: object | undefined
  /** The limit of a body as the service is set, in bytes; default 1 MiB. */
  body_bytes_max?: number | undefined
}

/** What to append, and how many of the newest messages it replaces. */
interface Change {
  replaced: number
  /** All of them are replaced, so that one request can take more of them. */
  is_all?: boolean
  entries: NewEntry[]
}

/** A conversation of the OpenAI Agents SDK that is kept in Annals: its items are messages of the format `responses`. */
export class AnnalsSession
  implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession
{
  /** The id of the session in Annals. */
  readonly id: string
  readonly #options: AnnalsSessionOptions
  readonly #session: KeyedNewSession
  /** Of the lease under which this object writes. */
  #fence: number | undefined

  constructor(options: AnnalsSessionOptions) {
    const { sessionId, user, configs } = options
    this.#options = options
    this.id = stableId('openai-agents', sessionId)
    this.#session = { use_uuid: this.id, user, configs: { ...configs, openai_agents_session: sessionId } }
  }

  async getSessionId(): Promise<string> {
    return this.#options.sessionId
  }

  /** The conversation's items since a compaction replaced the history, or the newest `limit` of them, in their order. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    return (await this.#read(limit)).items
  }

  /** The same, and whether they are all that there is since a compaction. */
  async #read(limit = Number.POSITIVE_INFINITY): Promise<{ items: AgentInputItem[]; begins: boolean }> {
    if (limit <= 0) return { items: [], begins: false }
    const query = { format: 'responses' as const, limit: Math.min(limit, MESSAGES_MAX), time_desc: true }
    // The newest page is the first; each is in order.
    const pages: JsonObject[][] = []
    let missing = limit
    let begins = false
    try {
      for await (const { items, metas } of this.#sessions.messages(this.id, query).pages()) {
        const begin = metas.findLastIndex((meta) => meta[BEGINS] === true)
        const from = Math.max(begin, items.length - missing, 0)
        const wanted = items.slice(from)
        pages.unshift(await Promise.all(wanted.map((blob, at) => this.#whole(blob, metas[from + at]))))
        missing -= wanted.length
        begins = begin === from
        if (missing <= 0 || begin !== -1) break
      }
    } catch (error) {
      if (!isError(error, 'session_not_found')) throw error
    }
    return { items: pages.flat().map(itemOf), begins }
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length === 0) return
    await this.#append(this.#entriesOf(items))
  }

  /** Takes the newest item; no two callers get the same one. */
  async popItem(): Promise<AgentInputItem | undefined> {
    const [item] = await this.#retractLast(1, 'message')
    return item?.kind === 'message' ? itemOf(await this.#whole(item.blob, item.meta)) : undefined
  }

  /** Takes all items out of the conversation; its log keeps them. */
  async clearSession(): Promise<void> {
    while ((await this.#retractLast(MESSAGES_MAX)).length === MESSAGES_MAX);
  }

  /** Replaces a stored call, such as one whose arguments a person has changed. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    await this.#change(async () => {
      const items = await this.getItems()
      const changed = mutations.reduce(replaceCall, items)
      const same = items.findIndex((item, index) => !isSame(item, changed[index]))
      if (same === -1) return undefined
      return { replaced: items.length - same, entries: this.#entriesOf(changed.slice(same)) }
    })
  }

  /**
   * Appends items or replaces the newest ones, once for one `operationId`, whatever breaks in between.
   * @throws UserError if the suffix does not match, or the operation was applied with another transaction
   */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (typeof operationId !== 'string' || !operationId.trim())
      throw new UserError('Session history transaction operationId must be a non-empty string.')
    const key = `operation:${idempotencyKey(operationId)}`
    const digest = digestOf(transaction)
    await this.#change(async () => {
      const applied = await this.#appliedDigest(key)
      if (applied === digest) return undefined
      if (applied !== undefined)
        throw new UserError('Session history operation was already applied with a different transaction.')
      const data = { operation_id: operationId, digest }
      const operation = { kind: 'event' as const, type: OPERATION_TYPE, key, data }
      if (transaction.type === 'append_items')
        return { replaced: 0, entries: [operation, ...this.#entriesOf(transaction.items)] }
      const { expectedSuffix, replacement } = transaction
      const { items, begins } = await this.#read(expectedSuffix.length)
      if (!isSame(items, expectedSuffix))
        throw new UserError('Session history suffix no longer matches the transaction precondition.')
      const replacing = this.#entriesOf(replacement)
      return {
        replaced: expectedSuffix.length,
        entries: [operation, ...(begins ? beginning(replacing) : replacing)],
      }
    })
  }

  /**
   * Has the conversation begin with a compaction and what it keeps. What the compaction sums up stays in the log, where
   * other formats and other readers find it; what it keeps moves to its other side.
   */
  async replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void> {
    await this.#change(async () => {
      const history = await this.getItems()
      const entries = this.#entriesOf(items)
      const [first, ...kept] = items
      if (first?.type !== COMPACTION) return { replaced: history.length, is_all: true, entries }
      return { replaced: keptAtEnd(history, kept), entries: beginning(entries) }
    })
  }

  /**
   * Runs `work` as the session's only runner: takes its lease, renews it, and releases it in the end. What this object
   * writes meanwhile is refused as soon as somebody else has the lease.
   * @throws AnnalsError leased, if somebody else holds it after `wait_ms`
   */
  async withLease<T>(options: LeaseOptions, work: (lease: HeldLease) => Promise<T>): Promise<T> {
    const { annals } = this.#options
    await createSession(annals, this.#session)
    return annals.runs.withLease(this.id, options, async (lease) => {
      this.#fence = lease.fence
      try {
        return await work(lease)
      } finally {
        this.#fence = undefined
      }
    })
  }

  /**
   * Stores where a run stands, so that any process can go on with it, and opens a request for each call that needs an
   * approval. Returns the requests; none if the run waits for nothing.
   */
  async checkpoint({ state }: { state: AnyRun }): Promise<RunnerRequest[]> {
    const waits = state.getInterruptions().length > 0
    if (!waits && (await this.#waiting()) === undefined) return []
    const id = randomUUID()
    const data = { state: waits ? state.toString() : null }
    const event = { kind: 'event' as const, type: RUN_TYPE, key: RUN_KEY, id, data }
    await this.#append(splitLargeEvent(event, this.#options.body_bytes_max))
    return this.#ask(id, state)
  }

  /**
   * The run that waits in this session, with what was decided, as soon as all of its requests are answered; undefined if
   * none waits. Run the agent with it. What a process stored that was killed after the answer is retracted first.
   */
  async resume<TContext, TAgent extends AnyAgent>(
    agent: TAgent,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<RunState<TContext, TAgent> | undefined> {
    const waiting = await this.#waiting()
    if (waiting === undefined) return undefined
    const state = await RunState.fromString<TContext, TAgent>(agent, waiting.text)
    // A process that was killed may have asked for some of them only.
    const answers = await answersTo(this.#options.annals, await this.#ask(waiting.id, state), signal)
    for (const [at, call] of state.getInterruptions().entries()) {
      const answer = answers[at]!
      if (answer.decision === 'approve') state.approve(call)
      else state.reject(call, { message: reasonOf(answer) })
    }
    await this.#takeBack(waiting.seq, new Set(state.getInterruptions().map(callIdOf)))
    return state
  }

  /** The newest run, if it waits. */
  async #waiting(): Promise<{ id: string; seq: number; text: string } | undefined> {
    const { annals } = this.#options
    const newest = this.#sessions.latest(this.id, { key: RUN_KEY })
    const [event] = (await ifFound(newest.page(), { items: [] })).items
    if (event?.kind !== 'event') return undefined
    const { state } = await readEventData(annals, this.id, event)
    return typeof state === 'string' ? { id: event.id, seq: event.seq, text: state } : undefined
  }

  #ask(id: string, state: AnyRun): Promise<RunnerRequest[]> {
    return askForCalls(this.#options.annals, this.id, waitingCalls(id, state), this.#fence)
  }

  /** Retracts the results of these calls, and the messages after the first of them. */
  async #takeBack(after_seq: number, call_ids: ReadonlySet<string | undefined>): Promise<void> {
    const ids: string[] = []
    for await (const item of this.#sessions.timeline(this.id, {
      after_seq,
      kind: 'message',
      limit: MESSAGES_MAX,
    })) {
      if (item.kind !== 'message' || item.retracted_by != null) continue
      const { type, call_id } = item.blob
      const isResult = String(type).endsWith('_output') && call_ids.has(String(call_id))
      if (ids.length > 0 || isResult) ids.push(item.id)
    }
    for (let from = 0; from < ids.length; from += IDS_MAX)
      await this.#sessions.retract(this.id, { ids: ids.slice(from, from + IDS_MAX) }, { fence: this.#fence })
  }

  async #append(entries: NewEntry[]): Promise<void> {
    const { annals, body_bytes_max } = this.#options
    const options = { idempotency_key: randomUUID(), body_bytes_max, fence: this.#fence }
    await appendToKeyed(annals, this.#session, entries, options)
  }

  #entriesOf(items: readonly AgentInputItem[]): NewEntry[] {
    return items.flatMap((item) => entriesOf(item, this.#options.body_bytes_max))
  }

  async #whole(blob: JsonObject, meta: JsonObject | undefined): Promise<JsonObject> {
    return (await readWholeMessage(this.#options.annals, this.id, { blob, meta: meta ?? {} })).blob
  }

  get #sessions(): Annals['sessions'] {
    return this.#options.annals.sessions
  }

  /** The newest so many entries that were not retracted, which nobody else gets. */
  async #retractLast(last: number, kind?: 'message'): Promise<TimelineItem[]> {
    const fence = this.#fence
    return (await ifFound(this.#sessions.retract(this.id, { last, kind }, { fence }), { items: [] })).items
  }

  /** Makes a change that was planned from what the session says, unless somebody wrote in between: then it is planned anew. */
  async #change(plan: () => Promise<Change | undefined>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const if_match = await this.#lastSeq()
      const change = await plan()
      if (change === undefined) return
      try {
        return await this.#carryOut(change, if_match)
      } catch (error) {
        if (!isError(error, 'seq_conflict') || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  async #carryOut({ replaced, is_all = false, entries: given }: Change, if_match: number): Promise<void> {
    const all = given.map(escapeJson)
    const parts = all.filter((entry) => entry.kind === 'event' && entry.type === PART_TYPE)
    const entries = all.filter((entry) => !parts.includes(entry))
    const is_many = replaced > MESSAGES_MAX
    if ((is_many && !is_all) || cutIntoBatches(entries, this.#options.body_bytes_max).length > 1)
      throw new UnstorableEntries(
        `${entries.length} entries in place of ${replaced} are more than one request carries: at most ${MESSAGES_MAX} each.`,
      )
    if (replaced === 0 && entries.length === 0) return
    const fence = this.#fence
    // Parts mean nothing by themselves, and what replaces others is stored without an id.
    for (const batch of cutIntoBatches(parts, this.#options.body_bytes_max))
      if_match = (await this.#sessions.appendBatch(this.id, batch, { if_match, fence })).items.at(-1)!.seq
    if (replaced === 0) await this.#sessions.appendBatch(this.id, entries, { if_match, fence })
    else {
      const which = is_many ? { after_seq: 0 } : { last: replaced, kind: 'message' as const }
      const replacement = entries.length > 0 ? { entries } : {}
      await this.#sessions.retract(this.id, { ...which, ...replacement }, { if_match, fence })
    }
  }

  /** The last seq of the session, which is created if it is not there. */
  async #lastSeq(): Promise<number> {
    const newest = this.#sessions.timeline(this.id, { time_desc: true, limit: 1 })
    const page = await createdOnFirstUse(this.#options.annals, this.#session, () => newest.page())
    return page.items[0]?.seq ?? 0
  }

  async #appliedDigest(key: string): Promise<unknown> {
    const [entry] = (await this.#sessions.latest(this.id, { key }).page()).items
    return entry?.kind === 'event' ? entry.data.digest : undefined
  }
}

/** The entries that store an item: parts if it is large, and last the message. */
function entriesOf(item: AgentInputItem, body_bytes_max: number | undefined): NewEntry[] {
  const message = { kind: 'message' as const, format: 'responses' as const, blob: responsesItemOf(item) }
  const stored = splitLargeMessage({ ...message, id: randomUUID() }, body_bytes_max) ?? [message]
  return [...stored.slice(0, -1), { ...stored.at(-1)!, id: undefined }]
}

/** The first of the calls with this id becomes the replacement, and any further one goes. */
function replaceCall(
  items: AgentInputItem[],
  { callId, replacement }: SessionHistoryRewriteArgs['mutations'][number],
): AgentInputItem[] {
  const isCall = (item: AgentInputItem) => item.type === 'function_call' && item.callId === callId
  const first = items.findIndex(isCall)
  return items.flatMap((item, index) => (isCall(item) ? (index === first ? [replacement] : []) : [item]))
}

/** Entries whose first message begins the history. */
function beginning(entries: readonly NewEntry[]): NewEntry[] {
  const first = entries.findIndex(({ kind }) => kind === 'message')
  return entries.map((entry, at) =>
    at === first && entry.kind === 'message' ? { ...entry, meta: { ...entry.meta, [BEGINS]: true } } : entry,
  )
}

/** How many of the newest items are those that a compaction keeps first. */
function keptAtEnd(history: readonly AgentInputItem[], kept: readonly AgentInputItem[]): number {
  for (let count = Math.min(history.length, kept.length); count > 0; count -= 1)
    if (isSame(history.slice(-count), kept.slice(0, count))) return count
  return 0
}

/** Of what a transaction says, whatever the order of its keys. */
function digestOf(transaction: SessionHistoryTransaction): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value
  return createHash('sha256').update(JSON.stringify(transaction, sorted)).digest('hex')
}
