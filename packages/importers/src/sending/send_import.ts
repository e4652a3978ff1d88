import { type Annals, AnnalsError, type NewEntry, type SessionAppend } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import type { ImportedEntry, ImportedSession, ImportRecord, JsonObject, Place } from '../records.js'
import { type StorablePart, storableParts } from './storable_parts.js'

const ENTRIES_AT_ONCE_MAX = 500
const LENGTH_AT_ONCE_MAX = 256 * 1024
/** From here on, the end of a session is sent without the beginning of the next, so that neither waits for the other. */
const LENGTH_ALONE_MIN = LENGTH_AT_ONCE_MAX / 4
const SESSIONS_AT_ONCE_MAX = 20
const CREATED_AT_ONCE_MAX = 8
/**
 * The JSON of appends that are on their way or wait for an earlier one to their session. Reading goes no further ahead,
 * because an append takes several times its length until it is answered. It is enough for several sessions: one takes its
 * appends in turn.
 */
const LENGTH_AHEAD_MAX = 4 * 1024 * 1024
/** What a session adds to an append beside its entries, about. */
const CONFIGS_LENGTH = 1024
const IDS_MAX = 200
/** Which entry the service refuses, at the beginning of what it says. */
const REFUSED_ENTRY = /^(?:.{0,80}: )?\/appends\/(\d+)\/entries\/(\d+)(\/\w+)?/

export interface SendOptions {
  /** The user of sessions for which the source names none. */
  user?: string | undefined
  signal?: AbortSignal | undefined
  /** Entries that were sent before, which are not sent again; those that are sent now are added. */
  sent?: Set<string> | undefined
  /** Everything that is said about the import and is not sent: what was found, refused and changed, and how far it is. */
  onNote(note: ImportNote): void
}

export type ImportNote =
  | Extract<ImportRecord, { kind: 'format' | 'refused' | 'warning' | 'progress' }>
  /** An entry is stored already, with other content. It stays as it is. */
  | { kind: 'changed'; place: Place; session_id: string; id: string }

/** What was stored now, and what was there. */
export interface SendTotals {
  sessions: { stored: number; known: number }
  entries: { stored: number; known: number; changed: number; refused: number }
}

interface Sent {
  id: string
  format: string
  file: string
  /** Resolves once the service has the session. */
  ready: Promise<void>
  /** The last seq before this import. Entries beyond it are new. */
  base_seq: number
  is_new: boolean
  is_complete: boolean
  configs: JsonObject
  /** How often it was begun: a session may have several files. */
  begun: number
}

type EntryRecord = Extract<ImportRecord, { kind: 'entry' }>

interface Waiting {
  sent: Sent
  entries: NewEntry[]
  places: Place[]
  /** Nothing else of the session follows, unless another file begins it again. */
  is_last: boolean
  /** How often the session was begun by then. */
  begun: number
}

/**
 * Sends an import to a project. What the project has already is recognized by its id and stays as it is. A session says in
 * `configs.import.complete` whether all of it is there, so one that was interrupted is completed by the next import.
 * @throws AnnalsError if the service refuses everything, or is not there
 */
export async function sendImport(
  annals: Annals,
  records: AsyncIterable<ImportRecord>,
  options: SendOptions,
): Promise<SendTotals> {
  const sender = new Sender(annals, options)
  for await (const record of records) {
    options.signal?.throwIfAborted()
    // Most records need not be waited for, and even a wait for nothing costs as much as reading a line.
    const taken = sender.take(record)
    if (taken) await taken
  }
  await sender.finish()
  return sender.totals
}

class Sender {
  readonly totals: SendTotals = {
    sessions: { stored: 0, known: 0 },
    entries: { stored: 0, known: 0, changed: 0, refused: 0 },
  }
  private readonly sessions = new Map<string, Sent>()
  private readonly creating = new Set<Promise<void>>()
  /** Entries whose id an earlier one of the same import has. */
  private readonly repeating = new WeakSet<object>()
  /** What waits to be sent, by session, with the place of each entry. */
  private waiting = new Map<string, Waiting>()
  /** Their ids: of two entries with one id in one request, the service refuses the second, even if they are the same. */
  private waiting_ids = new Map<string, ImportedEntry>()
  private waiting_entries = 0
  private waiting_length = 0
  /** Appends on their way. Those to one session follow each other: the last one of each is known. */
  private readonly ahead = new Set<Promise<void>>()
  private length_ahead = 0
  private readonly last_of = new Map<string, Promise<void>>()
  private found = { format: '', file: '' }
  private failure: unknown

  constructor(
    private readonly annals: Annals,
    private readonly options: SendOptions,
  ) {}

  /** Undefined: there is nothing to wait for. */
  take(record: ImportRecord): Promise<void> | undefined {
    if (this.failure !== undefined) throw this.failure
    switch (record.kind) {
      case 'format':
        this.found = { format: record.format, file: record.file }
        this.options.onNote(record)
        return undefined
      case 'session':
        return this.open(record, (sent) => this.create(record, sent))
      case 'fork':
        return this.flush().then(() => this.open(record, (sent) => this.fork(record, sent)))
      case 'configs': {
        const sent = this.sessions.get(record.session_id)!
        Object.assign(sent.configs, record.configs)
        return undefined
      }
      case 'entry':
        return this.add(record)
      case 'retraction':
        return this.flush().then(() => this.retract(record.session_id, record.ids))
      case 'compaction':
        return this.flush().then(() => this.compact(record))
      case 'end':
        return this.end(record.session_id)
      case 'pictures':
        return undefined
      default:
        this.options.onNote(record)
        return undefined
    }
  }

  async finish(): Promise<void> {
    await this.flush()
    await Promise.all(this.creating)
    if (this.failure !== undefined) throw this.failure
    // Those that a cut file had begun, and those that others only named.
    for (const sent of this.sessions.values()) await this.patch(sent, await this.newsOf(sent))
  }

  private get call() {
    return { signal: this.options.signal }
  }

  private async open(session: ImportedSession, make: (sent: Sent) => Promise<void>): Promise<void> {
    // A session may have several files.
    const known = this.sessions.get(session.id)
    if (known) {
      known.begun += 1
      Object.assign(known.configs, session.configs)
      return
    }
    while (this.creating.size >= CREATED_AT_ONCE_MAX) await Promise.race(this.creating)
    const sent: Sent = {
      id: session.id,
      ...this.found,
      base_seq: 0,
      is_new: true,
      is_complete: false,
      configs: {},
      begun: 1,
      ready: Promise.resolve(),
    }
    sent.ready = make(sent)
    this.sessions.set(session.id, sent)
    const settled = sent.ready
      .catch((error: unknown) => {
        this.failure ??= error
      })
      .finally(() => this.creating.delete(settled))
    this.creating.add(settled)
  }

  private async create({ id, parent_id, user, configs }: ImportedSession, sent: Sent): Promise<void> {
    if (parent_id !== undefined) await this.sessions.get(parent_id)?.ready
    try {
      const all = { ...configs, import: this.mark(sent, false) }
      const whose = user ?? this.options.user
      const { created_at, updated_at } = await this.annals.sessions.create(
        { use_uuid: id, parent: parent_id, user: whose, configs: all },
        this.call,
      )
      // An interrupted import left it, as it is to be created.
      if (updated_at !== created_at) await this.find(sent, configs)
      else this.totals.sessions.stored += 1
    } catch (error) {
      if (!(error instanceof AnnalsError) || error.error !== 'session_exists') throw error
      await this.find(sent, configs)
    }
  }

  /** What is there of a session that was imported before. */
  private async find(sent: Sent, imported: JsonObject): Promise<void> {
    const { configs } = await this.annals.sessions.get(sent.id, this.call)
    const newest = await this.annals.sessions
      .timeline(sent.id, { time_desc: true, limit: 1 }, this.call)
      .page()
    sent.is_new = false
    sent.configs = { ...imported, ...sent.configs }
    sent.base_seq = newest.items[0]?.seq ?? 0
    sent.is_complete = (configs.import as { complete?: unknown } | undefined)?.complete === true
    this.totals.sessions.known += 1
  }

  private async fork(
    { id, of, at, user, configs }: Extract<ImportRecord, { kind: 'fork' }>,
    sent: Sent,
  ): Promise<void> {
    const exists = await this.annals.sessions.get(id, this.call).catch((error: unknown) => {
      if (error instanceof AnnalsError && error.error === 'session_not_found') return undefined
      throw error
    })
    if (exists) return this.find(sent, configs)
    const [entry] = (await this.annals.sessions.timeline(of, { ids: at }, this.call).page()).items
    const all = { ...configs, import: this.mark(sent, false) }
    const whose = user ?? this.options.user
    const fork = { use_uuid: id, up_to_seq: entry?.seq ?? 0, configs: all, ...(whose && { user: whose }) }
    await this.annals.sessions.fork(of, fork, this.call)
    sent.base_seq = entry?.seq ?? 0
    this.totals.sessions.stored += 1
  }

  private mark({ format, file }: Sent, complete: boolean): JsonObject {
    return { format, file, complete }
  }

  private add(record: EntryRecord): Promise<void> | undefined {
    const { session_id, entry, repeats } = record
    const { sent } = this.options
    if (sent?.has(entry.id)) return undefined
    sent?.add(entry.id)
    const earlier = this.waiting_ids.get(entry.id)
    // A line that stands there twice says nothing new.
    if (repeats && earlier && writeJson(earlier) === writeJson(entry)) {
      this.totals.entries.known += 1
      return undefined
    }
    const parts = storableParts(entry)
    const [first] = parts
    const isAlone = !repeats && earlier !== undefined
    if (isAlone || parts.length > 1 || this.isFull(session_id, first!))
      return this.addAfterOthers(record, parts, isAlone)
    this.keep(record, first!)
    return undefined
  }

  private async addAfterOthers(
    record: EntryRecord,
    parts: readonly StorablePart[],
    isAlone: boolean,
  ): Promise<void> {
    if (isAlone) await this.send()
    for (const part of parts) {
      if (this.isFull(record.session_id, part)) await this.send()
      this.keep(record, part)
    }
  }

  /** Whether what waits must be sent before another part. */
  private isFull(session_id: string, { length }: StorablePart): boolean {
    return (
      this.waiting_entries >= ENTRIES_AT_ONCE_MAX ||
      this.waiting_length + length > LENGTH_AT_ONCE_MAX ||
      (this.waiting.size >= SESSIONS_AT_ONCE_MAX && !this.waiting.has(session_id))
    )
  }

  private keep({ session_id, entry, place, repeats }: EntryRecord, { part, length }: StorablePart): void {
    this.waiting_ids.set(entry.id, entry)
    const waiting = this.waitingFor(session_id)
    waiting.entries.push(part)
    if (repeats) this.repeating.add(part)
    waiting.places.push(place)
    this.waiting_entries += 1
    this.waiting_length += length
  }

  private waitingFor(session_id: string): Waiting {
    const sent = this.sessions.get(session_id)!
    const waiting = this.waiting.get(session_id) ?? {
      sent,
      entries: [],
      places: [],
      is_last: false,
      begun: 0,
    }
    this.waiting.set(session_id, waiting)
    return waiting
  }

  private async end(session_id: string): Promise<void> {
    if (this.waiting.size >= SESSIONS_AT_ONCE_MAX && !this.waiting.has(session_id)) await this.send()
    const waiting = this.waitingFor(session_id)
    waiting.is_last = true
    waiting.begun = waiting.sent.begun
    if (this.waiting_length >= LENGTH_ALONE_MIN) await this.send()
  }

  /** Sends what waits, once what was sent before to the same sessions is stored, and goes on meanwhile. */
  private async send(): Promise<void> {
    const { waiting } = this
    const length = this.waiting_length + waiting.size * CONFIGS_LENGTH
    this.waiting = new Map()
    this.waiting_ids = new Map()
    this.waiting_entries = 0
    this.waiting_length = 0
    while (this.ahead.size > 0 && this.length_ahead + length > LENGTH_AHEAD_MAX)
      await Promise.race(this.ahead)
    if (this.failure !== undefined) throw this.failure
    const earlier = [...waiting.keys()].map((id) => this.last_of.get(id))
    const sending = Promise.all(earlier)
      .then(() => (this.failure === undefined ? this.store([...waiting.values()]) : undefined))
      .catch((error: unknown) => {
        this.failure ??= error
      })
      .finally(() => {
        this.ahead.delete(sending)
        this.length_ahead -= length
        for (const id of waiting.keys()) if (this.last_of.get(id) === sending) this.last_of.delete(id)
      })
    this.ahead.add(sending)
    this.length_ahead += length
    for (const id of waiting.keys()) this.last_of.set(id, sending)
  }

  private async flush(): Promise<void> {
    await this.send()
    await Promise.all(this.ahead)
    if (this.failure !== undefined) throw this.failure
  }

  private async store(groups: Waiting[]): Promise<void> {
    await Promise.all(groups.map(({ sent }) => sent.ready))
    await this.append(
      groups.filter(({ entries }) => entries.length > 0),
      true,
    )
    for (const { sent, is_last, begun } of groups) {
      if (is_last) await this.complete(sent)
      if (is_last && begun === sent.begun) this.sessions.delete(sent.id)
    }
  }

  /**
   * Appends to several sessions at once. If the service refuses an entry, all others are stored and that one is named.
   * `is_whole`: nothing of what waited is sent apart, so that a session may be completed with it.
   */
  private async append(groups: Waiting[], is_whole = false): Promise<void> {
    if (groups.length === 0) return
    const completed = groups.filter(({ sent, is_last }) => is_whole && is_last && sent.is_new)
    const appends: SessionAppend[] = groups.map(({ sent, entries }) => ({ session_id: sent.id, entries }))
    for (const [index, group] of groups.entries())
      if (completed.includes(group)) appends[index]!.configs_patch = this.patchOf(group.sent)
    let answer: Awaited<ReturnType<Annals['sessions']['appendToSessions']>>
    try {
      answer = await this.annals.sessions.appendToSessions(appends, { ...this.call, with_items: false })
    } catch (error) {
      if (!(error instanceof AnnalsError) || ![400, 409, 413, 422].includes(error.status)) throw error
      await this.appendOthers(groups, error)
      return
    }
    for (const { sent } of completed) {
      sent.is_complete = true
      const patch = appends.find(({ session_id }) => session_id === sent.id)!.configs_patch as JsonObject
      for (const [name, value] of Object.entries(patch))
        if (sent.configs[name] === value) delete sent.configs[name]
    }
    // What is there already is as it was sent: the service refuses an id with other content.
    for (const [index, { seqs = [] }] of answer.appends.entries()) {
      const { sent, is_last } = groups[index]!
      for (const seq of seqs) this.totals.entries[seq > sent.base_seq ? 'stored' : 'known'] += 1
      const has_grown = seqs.some((seq) => seq > sent.base_seq)
      if (has_grown && sent.is_complete && !is_last) {
        sent.is_complete = false
        await this.patch(sent, { import: this.mark(sent, false) })
      }
      // Another file may have the same entries.
      sent.base_seq = Math.max(sent.base_seq, ...seqs)
    }
  }

  /** Appends what the service does not refuse, and tells what it does. */
  private async appendOthers(groups: Waiting[], error: AnnalsError): Promise<void> {
    const [, group_index, entry_index, what] = REFUSED_ENTRY.exec(error.message) ?? []
    const group = groups[Number(group_index)]
    if (group === undefined) {
      const [first, ...others] = groups
      if (others.length > 0) for (const one of groups) await this.append([one])
      else if (first!.entries.length > 1) for (const half of halves(first!)) await this.append([half])
      else this.refuse(first!.places[0]!, error.message)
      return
    }
    const at = Number(entry_index)
    const [entry] = group.entries.splice(at, 1)
    const [place] = group.places.splice(at, 1)
    if (what === '/id' && this.repeating.has(entry!))
      this.refuse(place!, 'an earlier entry of this session has the same id; that one is kept')
    else if (what === '/id') this.change(group.sent, place!, entry!.id!)
    else this.refuse(place!, error.message)
    await this.append(groups.filter(({ entries }) => entries.length > 0))
  }

  private patchOf(sent: Sent): JsonObject {
    return { ...sent.configs, import: this.mark(sent, true) }
  }

  private change({ id: session_id }: Sent, place: Place, id: string): void {
    this.totals.entries.changed += 1
    this.options.onNote({ kind: 'changed', place, session_id, id })
  }

  private refuse(place: Place, reason: string): void {
    this.totals.entries.refused += 1
    this.options.onNote({ kind: 'refused', place, reason })
  }

  /** Says that all of a session is there, and what became known of it after it was created. */
  private async complete(sent: Sent): Promise<void> {
    const news = await this.newsOf(sent)
    if (!sent.is_complete || Object.keys(news).length > 0)
      await this.patch(sent, this.patchOf({ ...sent, configs: news }))
  }

  private async patch({ id }: Sent, configs: JsonObject): Promise<void> {
    if (Object.keys(configs).length > 0) await this.annals.sessions.configs.merge(id, configs, this.call)
  }

  /** What the service does not know of a session. What somebody has changed since an earlier import stays. */
  private async newsOf({ id, is_new, configs }: Sent): Promise<JsonObject> {
    if (is_new || Object.keys(configs).length === 0) return configs
    const { configs: stored } = await this.annals.sessions.get(id, this.call)
    return Object.fromEntries(Object.entries(configs).filter(([name]) => !Object.hasOwn(stored, name)))
  }

  /** Says that a summary stands for what came before, unless that was said before. */
  private async compact({
    session_id,
    at,
    summary,
    place,
  }: Extract<ImportRecord, { kind: 'compaction' }>): Promise<void> {
    const { sessions } = this.annals
    const [entry] = (await sessions.timeline(session_id, { ids: at }, this.call).page()).items
    const made = { type: 'annals.compaction', time_desc: true, limit: 1 }
    const [last] = (await sessions.timeline(session_id, made, this.call).page()).items
    const covered = last?.kind === 'event' ? Number(last.data.to_seq) : 0
    if (!entry || covered >= entry.seq) return
    try {
      await sessions.compact(session_id, { to_seq: entry.seq, summary, by: this.found.format }, this.call)
    } catch (error) {
      if (!(error instanceof AnnalsError) || ![400, 404, 409, 413].includes(error.status)) throw error
      const reason = `its summary is stored, and not used in contexts: ${error.message}`
      this.options.onNote({ kind: 'warning', place, reason })
    }
  }

  private async retract(session_id: string, ids: string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += IDS_MAX) {
      const some = ids.slice(at, at + IDS_MAX)
      const { items } = await this.annals.sessions
        .timeline(session_id, { ids: some.join(',') }, this.call)
        .page()
      const left = items.filter(({ retracted_by }) => retracted_by == null).map(({ id }) => id)
      if (left.length > 0) await this.annals.sessions.retract(session_id, { ids: left }, this.call)
    }
  }
}

function halves(group: Waiting): Waiting[] {
  const middle = group.entries.length >> 1
  const part = (from: number, to?: number) => ({
    ...group,
    entries: group.entries.slice(from, to),
    places: group.places.slice(from, to),
  })
  return [part(0, middle), part(middle)]
}
