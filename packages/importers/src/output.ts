import { InvalidMessage, type MessageFormat, readMessage } from '@annals/messages'
import { isJsonObject, writeJson } from '@annals/messages/json'
import { digestOf, stableId } from './ids.js'
import type { ImportRecord, JsonObject, Place, SummaryMessage, Tally } from './records.js'
import { SeenIds } from './seen_ids.js'
import { timeOf } from './times.js'

/** A config that is larger becomes an event: the service takes 64 KiB of them together. */
const CONFIG_LENGTH_MAX = 4_096
const TYPE_LENGTH_MAX = 200
const META_LENGTH_MAX = 48 * 1024
/** Contents of a session that are counted, of those that repeat. */
const REPEATED_MAX = 20_000
/** What a source says of a session. What is undefined or null is left out. */
export interface SessionFacts {
  parent?: string | undefined
  user?: unknown
  configs?: JsonObject
  /** When it last changed, where the source says so. */
  changed_at?: unknown
}

/** What else an entry has. */
export interface EntryFacts {
  /** What the source calls it. Without one, the entry is named after its content, and what repeats it by number. */
  native?: string | number | undefined
  /** When it happened, in any of the forms that `timeOf` knows. Without one, it has the time of the entry before it. */
  at?: unknown
  /** What has no time gets none. */
  is_exact?: true
  meta?: JsonObject
  /** What it is about, of an entry that was exported from Annals. */
  key?: string
}

interface OpenSession {
  id: string
  /** It was only named, by a session below it. */
  is_elsewhere: boolean
  /** What was said of it, as JSON. */
  configs: Map<string, string>
  /** When its last entry happened. */
  last_at?: string
  /** Digests of entries to which the source gives no name. */
  unnamed: SeenIds
  /** How often each content was there, if it was there before. */
  repeated: Map<string, number>
  /** Ids of entries that the source names. */
  named: SeenIds
}

/**
 * What a parser writes to: it makes ids, checks messages, and knows what became of each piece. A session is named by a key,
 * which is what the source calls it.
 */
export class Output {
  readonly tally: Tally = { read: 0, mapped: 0, kept_raw: 0, refused: 0 }
  private records: ImportRecord[] = []
  private readonly open = new Map<string, OpenSession>()
  private readonly skipped = new Set<string>()
  private place: Place = { file: '', line: 0 }
  private became: 'nothing' | 'told' | 'raw' | 'mapped' | 'refused' = 'nothing'

  constructor(
    readonly format: string,
    private readonly file: string,
    private readonly since?: string,
  ) {}

  /** A piece is about to be read. */
  begin(line: number): void {
    this.place = { file: this.file, line }
    this.became = 'nothing'
  }

  /** The piece was read. What nobody took is kept raw. */
  finish(piece: unknown): void {
    if (this.became === 'nothing') this.raw(this.anySession(), 'unknown', piece)
    this.tally.read += 1
    this.tally[this.became === 'raw' ? 'kept_raw' : this.became === 'refused' ? 'refused' : 'mapped'] += 1
  }

  /** What was written since the last time. */
  take(): ImportRecord[] {
    const { records } = this
    this.records = []
    return records
  }

  sessionId(key: string): string {
    return stableId(this.format, 'session', key)
  }

  entryId(key: string, native: string | number): string {
    return stableId(this.format, 'entry', key, native)
  }

  isOpen(key: string): boolean {
    return this.open.get(key)?.is_elsewhere === false
  }

  /** Opens a session below which another one stands, and of which nothing may come here. */
  mention(key: string, configs: JsonObject): void {
    if (this.open.has(key)) return
    this.session(key, { configs })
    this.open.get(key)!.is_elsewhere = true
  }

  /** Opens a session, or adds to one that is open. */
  session(key: string, facts: SessionFacts = {}): void {
    const found = this.open.get(key)
    const configs = this.newConfigs(found, this.storable(key, facts.configs ?? {}))
    if (found) found.is_elsewhere = false
    if (found && Object.keys(configs).length === 0) return
    // What only says something of a session is mapped, unless it is kept raw as well.
    if (this.became === 'nothing') this.became = 'told'
    if (found) {
      if (!this.skipped.has(key)) this.records.push({ kind: 'configs', session_id: found.id, configs })
      return
    }
    this.newConfigs(this.openAs(key), configs)
    const changed_at = timeOf(facts.changed_at)
    if (this.since !== undefined && changed_at !== undefined && changed_at < this.since) {
      this.skipped.add(key)
      return
    }
    const { parent, user } = facts
    const parent_id = parent === undefined ? undefined : this.sessionId(parent)
    this.records.push({ kind: 'session', id: this.sessionId(key), parent_id, user: userOf(user), configs })
    this.keepLarge(key, facts.configs ?? {}, configs)
  }

  /** Opens a session that has the entries of another one up to `at`, which is what the source calls that entry. */
  fork(key: string, of: string, at: string, facts: SessionFacts = {}): void {
    const configs = this.storable(key, facts.configs ?? {})
    this.openAs(key)
    if (this.skipped.has(of)) {
      this.skipped.add(key)
      return
    }
    this.records.push({
      kind: 'fork',
      of: this.sessionId(of),
      at: this.entryId(of, at),
      id: this.sessionId(key),
      user: userOf(facts.user),
      configs,
    })
  }

  /** All of the session was read. */
  end(key: string): void {
    const found = this.open.get(key)
    if (!found) return
    this.open.delete(key)
    if (!this.skipped.delete(key) && !found.is_elsewhere)
      this.records.push({ kind: 'end', session_id: found.id })
  }

  endAll(): void {
    for (const key of [...this.open.keys()]) this.end(key)
  }

  /** A message in its provider's format; what is none is kept raw. Returns its id if it is one. */
  message(key: string, format: MessageFormat, blob: unknown, facts: EntryFacts = {}): string | undefined {
    if (!isMessage(format, blob)) {
      const role = isJsonObject(blob) && typeof blob.role === 'string' ? blob.role : 'message'
      this.raw(key, role, facts.meta ? { message: blob, ...facts.meta } : blob, facts)
      return undefined
    }
    this.became = this.became === 'refused' ? 'refused' : 'mapped'
    const { meta } = facts
    if (meta && Object.keys(meta).length > 0) {
      if (writeJson(meta).length > META_LENGTH_MAX) {
        const native = `meta of ${facts.native ?? digestOf(blob)}`
        this.event(key, `source.${this.format}.meta`, { raw: meta, noise: true }, { ...facts, native })
      } else return this.entry(key, facts, { kind: 'message', format, blob, meta })
    }
    return this.entry(key, facts, { kind: 'message', format, blob })
  }

  event(key: string, type: string, data: JsonObject, facts: EntryFacts = {}): void {
    this.became = this.became === 'refused' ? 'refused' : 'mapped'
    this.entry(key, facts, { kind: 'event', type: type.slice(0, TYPE_LENGTH_MAX), data })
  }

  /** How a run went: a reward, a score, a verdict. */
  outcome(key: string, data: JsonObject, facts: EntryFacts = {}): void {
    this.event(key, 'outcome', data, { native: 'outcome', ...facts })
  }

  /** What no rule knows, whole. `noise` is what a view may fold: progress, snapshots, repetitions. */
  raw(
    key: string,
    kind: string,
    value: unknown,
    facts: EntryFacts & { noise?: boolean } = {},
  ): string | undefined {
    if (this.became === 'nothing' || this.became === 'told') this.became = 'raw'
    const data = { raw: value ?? null, ...(facts.noise && { noise: true }) }
    return this.entry(key, facts, { kind: 'event', type: rawType(this.format, kind), data })
  }

  /** Takes back entries that came before. */
  retract(key: string, ids: string[]): void {
    const found = this.open.get(key)
    if (found && ids.length > 0 && !this.skipped.has(key))
      this.records.push({ kind: 'retraction', session_id: found.id, ids })
  }

  /** A summary stands for what came before an entry, and for the entry. */
  compact(key: string, at: string | undefined, summary: SummaryMessage[]): void {
    const found = this.open.get(key)
    const is_readable = summary.length > 0 && summary.every(({ format, blob }) => isMessage(format, blob))
    if (!found || at === undefined || !is_readable || this.skipped.has(key)) return
    const { place } = this
    this.records.push({ kind: 'compaction', session_id: found.id, at, summary, place })
  }

  /** Everything that the piece says is stored already. */
  accept(): void {
    if (this.became === 'nothing') this.became = 'told'
  }

  refuse(reason: string): void {
    this.became = 'refused'
    this.records.push({ kind: 'refused', place: this.place, reason })
  }

  warn(reason: string): void {
    this.records.push({ kind: 'warning', place: this.place, reason })
  }

  private openAs(key: string): OpenSession {
    const session: OpenSession = {
      id: this.sessionId(key),
      is_elsewhere: false,
      configs: new Map(),
      unnamed: new SeenIds(),
      repeated: new Map(),
      named: new SeenIds(),
    }
    this.open.set(key, session)
    return session
  }

  /** What was not said yet. */
  private newConfigs(session: OpenSession | undefined, configs: JsonObject): JsonObject {
    if (!session) return configs
    const news = Object.entries(configs).filter(
      ([name, value]) => session.configs.get(name) !== writeJson(value),
    )
    for (const [name, value] of news) session.configs.set(name, writeJson(value))
    return Object.fromEntries(news)
  }

  private entry(
    key: string,
    { native, at, is_exact, key: about }: EntryFacts,
    content:
      | { kind: 'event'; type: string; data: JsonObject }
      | { kind: 'message'; format: MessageFormat; blob: JsonObject; meta?: JsonObject },
  ): string | undefined {
    if (!this.open.has(key)) this.session(key)
    if (this.skipped.has(key)) return undefined
    const session = this.open.get(key)!
    const id = this.entryId(key, native ?? nameOf(content, session))
    const repeats = native !== undefined && !session.named.add(id)
    const own_at = timeOf(at)
    if (own_at !== undefined) session.last_at = own_at
    const occurred_at = own_at ?? (is_exact ? undefined : session.last_at)
    const beside = {
      ...(occurred_at !== undefined && { occurred_at }),
      ...(about !== undefined && { key: about }),
    }
    const entry = { id, ...beside, ...content }
    this.records.push({
      kind: 'entry',
      session_id: session.id,
      entry,
      place: this.place,
      ...(repeats && { repeats }),
    })
    return id
  }

  /** The configs that the service takes as such. */
  private storable(key: string, configs: JsonObject): JsonObject {
    const kept = Object.entries(configs).filter(
      ([, value]) => value != null && value !== '' && writeJson(value).length <= CONFIG_LENGTH_MAX,
    )
    const storable = Object.fromEntries(kept)
    if (this.open.has(key)) this.keepLarge(key, configs, storable)
    return storable
  }

  private keepLarge(key: string, all: JsonObject, storable: JsonObject): void {
    const large = Object.entries(all).filter(
      ([name, value]) => value != null && value !== '' && !(name in storable),
    )
    if (large.length > 0) this.raw(key, 'configs', Object.fromEntries(large), { noise: true })
  }

  /** Where a piece goes that says nothing of its session. */
  private anySession(): string {
    return [...this.open.keys()].at(-1) ?? this.file
  }
}

export function rawType(format: string, kind: string): string {
  const plain = kind.replace(/[^\w.-]+/g, '_').slice(0, 80)
  return `source.${format}.${plain === '' ? 'unknown' : plain}`
}

/** The name of an entry that its source gives none: its content, and how often that was there. */
function nameOf(content: object, { unnamed, repeated }: OpenSession): string {
  const digest = digestOf(content)
  if (unnamed.add(digest)) return `${digest} 1`
  const count = (repeated.get(digest) ?? 1) + 1
  if (repeated.has(digest) || repeated.size < REPEATED_MAX) repeated.set(digest, count)
  return `${digest} ${count}`
}

function isMessage(format: MessageFormat, blob: unknown): blob is JsonObject {
  try {
    readMessage(format, blob)
    return isJsonObject(blob)
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return false
  }
}

function userOf(user: unknown): string | undefined {
  const text = typeof user === 'number' ? String(user) : user
  return typeof text === 'string' && text !== '' && [...text].length <= 256 ? text : undefined
}
