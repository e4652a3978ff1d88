import type { Reservation } from '../../projects/usage.js'

/**
 * The type of the events that retract entries, which only the service appends. Their data is `{ "seqs": […] }`, and with
 * `compactions` those of them that nobody asked for, but that covered one of the others.
 */
export const RETRACTION_TYPE = 'annals.retraction'

/** The seqs that a retraction was asked for. */
export function askedSeqs({ seqs, compactions }: { seqs: number[]; compactions?: number[] }): number[] {
  const fallen = new Set(compactions)
  return seqs.filter((seq) => !fallen.has(seq))
}

/** An entry to store. `data` and `meta` are JSON as the caller sent it, already checked. */
export interface AppendedEntry {
  id: string
  /** The caller chose the id: if an entry is already stored under it, that one is the answer. */
  id_given: boolean
  kind: 'event' | 'message'
  type: string | null
  format: string | null
  role: string | null
  /** Length of the entry's JSON text, in bytes. */
  bytes: number
  /** The caller's key of the entry; null if it has none. */
  key: string | null
  /** Tokens of a message; 0 for an event. */
  tokens: number
  /** When it happened, in UTC with microseconds; null: when it is stored. */
  occurred_at: string | null
  data: string
  meta: string | null
  references?: readonly BlobPlace[] | undefined
  /** It is an input of the session, and the append itself reads what it is. */
  is_input?: boolean
}

/** Where a request refers to a blob: a JSON pointer into its body. */
export interface BlobPlace {
  sha256: string
  pointer: string
}

/** Which live entries a retraction retracts, of those before it. */
export type Retraction =
  | { seqs: number[] }
  | { after_seq: number }
  | { last: number; kind?: 'event' | 'message' | undefined; type?: string | undefined }

export interface SessionAppend {
  session_id: string
  entries: readonly AppendedEntry[]
  /** Append only if the session's last seq still has this value. */
  if_match?: number | undefined
  /** Append only if nothing was retracted or compacted in the session after this seq. Not together with `if_match`. */
  unrevised_since?: number | undefined
  /** Append only if the session's lease still has this fence. */
  fence?: number | undefined
  /** The inputs among these entries, which come first; they are stored only if all of them are pending. */
  apply?: readonly string[] | undefined
  /** JSON to merge into the session's configs if an entry is new; as JSON text. */
  configs_patch?: string | undefined
}

/** One request to append: a single event, a single message, or an atomic batch of both (`entries`). */
export interface AppendRequest extends SessionAppend {
  project_id: string
  kind: 'event' | 'message' | 'entries'
  /** The entries that the first entry, an event of RETRACTION_TYPE, retracts. The others replace them. */
  retraction?: Retraction | undefined
  /**
   * For several sessions, all or nothing: what each of them gets. Then `session_id` is that of the first, `entries` are
   * all entries in order, and conditions stand here.
   */
  appends?: readonly SessionAppend[] | undefined
  idempotency?: IdempotencyKey | undefined
  /**
   * Until when, as performance.now() has it, it is known that the project has no consumers of changes: a flush that is
   * sent later writes marks for those that it may have.
   */
  unmarked_until: number
  /** Whether the project's sessions begin chains; undefined: they never did, as far as is known. */
  proof?: boolean | undefined
  /** Its reservation in the project's quota of bytes, settled when it is stored. */
  room?: Reservation | undefined
  /** Why nothing new may be stored. Retries of stored entries are still answered. */
  only_known?: Error | undefined
  /** None of its ids was there a moment ago: they are looked up again only if one is by now. */
  looked_up?: boolean | undefined
  /** Nobody reads its answer, which has no entries where all of them are new. */
  unanswered?: boolean | undefined
}

export function appendsOf(request: AppendRequest): readonly SessionAppend[] {
  return request.appends ?? [request]
}

export function hasGivenIds({ entries }: AppendRequest): boolean {
  for (const { id_given } of entries) if (id_given) return true
  return false
}

/** How an entry is answered: by itself, or in a batch as an item of the timeline, which a retraction is not. */
export function shapeOf({ kind }: AppendRequest, type: string | null): EntryShape {
  return kind === 'entries' && type !== RETRACTION_TYPE ? 'item' : 'resource'
}

export interface IdempotencyKey {
  key: string
  request_hash: string
}

/** One stored entry as it is answered. The other fields are set for a message that was read back for a retry. */
export interface AppendAnswer {
  seq: number
  json: string
  id?: string
  format?: string
  blob?: string
  /** The entries that a retraction retracted, as items of the timeline; absent if they have to be read. */
  items?: readonly string[] | undefined
}

/** The result of a request: its entries in order. `replayed`: an earlier request with the key stored them. */
export interface AppendOutcome {
  entries: AppendAnswer[]
  replayed: boolean
  /** How much of it was stored before, if any, by the ids of its entries. */
  known?: { entries: number; bytes: number }
}

export function storedOf({ entries }: AppendRequest, { known }: AppendOutcome) {
  let bytes = -(known?.bytes ?? 0)
  for (const entry of entries) bytes += entry.bytes
  return { entries: entries.length - (known?.entries ?? 0), bytes }
}

export interface PendingAppend {
  readonly request: AppendRequest
  readonly bytes: number
  /** performance.now() when it was accepted, in ms. */
  readonly enqueued_at: number
  /** The result of AppenderOptions.originOf at that time. */
  readonly origin?: unknown
  /** Repeats with the same idempotency key that arrived meanwhile: they share this one's result. */
  readonly followers: PendingAppend[]
  resolve(outcome: AppendOutcome): void
  reject(error: unknown): void
}

export function succeed(pending: PendingAppend, outcome: AppendOutcome): void {
  pending.resolve(outcome)
  for (const follower of pending.followers) follower.resolve({ ...outcome, replayed: true })
}

export function fail(pending: PendingAppend, error: unknown): void {
  pending.reject(error)
  for (const follower of pending.followers) follower.reject(error)
}

/** An entry as shown: `data` and `meta` are JSON text, times RFC 3339 in UTC with microseconds. */
export interface ShownEntry {
  seq: number
  id: string
  kind: 'event' | 'message'
  type: string | null
  format: string | null
  role: string | null
  parent_id: string | null
  /** These are shown only if set. */
  key?: string | null
  /** When it happened, if its caller said so. */
  occurred_at?: string | null
  /** The seq of the event that retracted it. */
  retracted_by?: number | null
  meta: string | null
  /** An event's data or a message's blob. */
  data: string
  created_at: string
  updated_at: string
}

export interface ShownLog {
  project_id: string
  session_id: string
  disable_task_tracking: boolean
}

/** An item of the timeline, in which a message has its format and blob; or a SessionEvent, or a Message without its parts. */
export type EntryShape = 'item' | 'resource'

/** Writes an entry as JSON: the one place that knows the fields of events and messages, for appends and reads. */
export function entryJson(shape: EntryShape, log: ShownLog, entry: ShownEntry): string {
  const { seq, id, kind, data } = entry
  const key = entry.key ? `"key":${JSON.stringify(entry.key)},` : ''
  const occurred = entry.occurred_at ? `"occurred_at":"${entry.occurred_at}",` : ''
  const mark = entry.retracted_by ? `,"retracted_by":${entry.retracted_by}` : ''
  const times = `${key}${occurred}"created_at":"${entry.created_at}","updated_at":"${entry.updated_at}"${mark}`
  if (kind === 'event') {
    const fields = `"id":"${id}","project_id":"${log.project_id}","session_id":"${log.session_id}","type":${JSON.stringify(entry.type)},"data":${data}`
    return shape === 'item'
      ? `{"kind":"event","seq":${seq},${fields},${times}}`
      : `{${fields},"seq":${seq},${times}}`
  }
  const parent = entry.parent_id === null ? 'null' : `"${entry.parent_id}"`
  const status = log.disable_task_tracking ? 'disable_tracking' : 'pending'
  const fields = `"id":"${id}","session_id":"${log.session_id}","parent_id":${parent},"role":"${entry.role}","meta":${entry.meta},"task_id":null,"session_task_process_status":"${status}"`
  return shape === 'item'
    ? `{"kind":"message","seq":${seq},${fields},"format":"${entry.format}","blob":${data},${times}}`
    : `{"seq":${seq},${fields},${times}}`
}
