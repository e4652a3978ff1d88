import { plainArray, textArray } from '../../postgres/array_literal.js'
import type { Parameter } from '../../postgres/database.js'
import type { AppendedEntry, AppendRequest, IdempotencyKey } from './append_request.js'

/** A request to be stored, and the seqs, by id, of those of its entries that are stored already. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

type KeyedAppend = OpenAppend & { request: { idempotency: IdempotencyKey } }

/** The position of one entry: so many after its session's head, or the seq that it already has. */
export interface Place {
  entry: AppendedEntry
  /** The index of its session in the flush, from 0. */
  session: number
  behind: number
  known_seq: number
  /** The previous message in the flush; null for an event, and for the first message, which follows the head's. */
  parent_id: string | null
  is_first_message: boolean
}

/** One session's part of a flush. */
interface SessionPart {
  session_id: string
  if_match: number | null
  new_entries: number
  new_tokens: number
  new_bytes: number
  last_message_id: string | null
  has_messages: boolean
  has_keys: boolean
  requests: OpenAppend[]
}

/** What a flush sends to the database, and where each request finds its entries in the result. */
export interface FlushPlan {
  /** Of APPEND_ENTRIES. */
  parameters: Parameter[]
  /** The entries that are returned as the database writes them, in the order of the parameters. */
  wanted: AppendedEntry[]
  /** The entries of each request. */
  placed: ReadonlyMap<OpenAppend, Place[]>
}

/**
 * Numbers the entries of a flush within their sessions. Sessions are ordered by id, the order in which every flush
 * locks them; requests keep their order within a session.
 */
export function planFlush(project_id: string, open: readonly OpenAppend[]): FlushPlan {
  const parts = partsOf(open)
  const placed = new Map<OpenAppend, Place[]>()
  const added: Place[] = []
  // Entries whose answer may have to be repeated: a retry is answered from what is stored, and the first answer must
  // be identical byte for byte, so both are written from the stored text.
  const wantedBack: number[] = []
  parts.forEach((part, session) => {
    for (const one of part.requests) {
      const places = one.request.entries.map((entry) => place(part, session, entry, one.known))
      placed.set(one, places)
      for (const each of places) {
        if (each.behind === 0) continue
        added.push(each)
        if (one.request.idempotency || each.entry.id_given) wantedBack.push(added.length)
      }
    }
  })
  const parameters = [
    project_id,
    ...sessionParameters(parts),
    ...entryParameters(added),
    ...(parts.every(isOfEvents) ? NO_MORE : moreParameters(parts, added)),
    ...keyParameters(placed),
    wantedBack.length === 0 ? null : plainArray(wantedBack),
  ]
  return { parameters, wanted: wantedBack.map((index) => added[index - 1]!.entry), placed }
}

function partsOf(open: readonly OpenAppend[]): SessionPart[] {
  const parts = new Map<string, SessionPart>()
  for (const one of open) {
    const { session_id, if_match, entries } = one.request
    let part = parts.get(session_id)
    if (!part) {
      part = emptyPart(session_id)
      parts.set(session_id, part)
    }
    // A request that is already stored is answered whatever the head is now.
    if (if_match !== undefined && one.known.size < entries.length) part.if_match = if_match
    part.requests.push(one)
  }
  return [...parts.values()].sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
}

function emptyPart(session_id: string): SessionPart {
  return {
    session_id,
    if_match: null,
    new_entries: 0,
    new_tokens: 0,
    new_bytes: 0,
    last_message_id: null,
    has_messages: false,
    has_keys: false,
    requests: [],
  }
}

function place(
  part: SessionPart,
  session: number,
  entry: AppendedEntry,
  known: ReadonlyMap<string, number>,
): Place {
  const isMessage = entry.kind === 'message'
  if (isMessage) part.has_messages = true
  if (entry.key !== null) part.has_keys = true
  const known_seq = known.get(entry.id) ?? 0
  if (known_seq > 0) return { entry, session, behind: 0, known_seq, parent_id: null, is_first_message: false }
  part.new_entries += 1
  part.new_tokens += entry.tokens
  part.new_bytes += entry.bytes
  const parent_id = isMessage ? part.last_message_id : null
  if (isMessage) part.last_message_id = entry.id
  const is_first_message = isMessage && parent_id === null
  return { entry, session, behind: part.new_entries, known_seq, parent_id, is_first_message }
}

/** Whether a session only gets new, unconditional events without keys, so that its head need not be known. */
function isOfEvents({ has_messages, has_keys, if_match, new_entries }: SessionPart): boolean {
  return !has_messages && !has_keys && if_match === null && new_entries > 0
}

function sessionParameters(parts: SessionPart[]): string[] {
  return [
    plainArray(parts.map((part) => part.session_id)),
    plainArray(parts.map((part) => part.new_entries)),
    plainArray(parts.map((part) => part.new_bytes)),
  ]
}

function entryParameters(added: Place[]): string[] {
  return [
    plainArray(added.map((one) => one.session + 1)),
    plainArray(added.map((one) => one.behind)),
    plainArray(added.map((one) => one.entry.id)),
    plainArray(added.map((one) => one.entry.bytes)),
    textArray(added.map((one) => one.entry.type)),
    dataParameter(added),
  ]
}

/** What a flush of events alone does without. */
const NO_MORE = Array.from({ length: 12 }, () => null)

function moreParameters(parts: SessionPart[], added: Place[]): Array<string | null> {
  const metas = added.map((one) => one.entry.meta)
  const texts = (of: (entry: AppendedEntry) => string | null) =>
    optionalArray(
      added.map(({ entry }) => of(entry)),
      textArray,
    )
  const ofMessages = parts.filter((part) => part.has_messages).map((part) => part.session_id)
  return [
    optionalArray(parts.map((part) => part.if_match)),
    plainArray(parts.map((part) => part.new_tokens)),
    optionalArray(parts.map((part) => part.last_message_id)),
    optionalArray(added.map((one) => one.parent_id)),
    optionalArray(added.map((one) => one.is_first_message || null)),
    plainArray(added.map((one) => one.entry.tokens)),
    textArray(added.map((one) => one.entry.kind)),
    texts(({ role }) => role),
    texts(({ format }) => format),
    texts(({ key }) => key),
    metas.every(isNull) ? '[]' : `[${metas.map((meta) => meta ?? 'null').join(',')}]`,
    ofMessages.length === 0 ? null : plainArray(ofMessages),
  ]
}

function dataParameter(added: Place[]): string {
  return `[${added.map((one) => one.entry.data).join(',')}]`
}

/**
 * Replaces an array without values by an empty one, which means the same because `unnest` fills up with nulls. Most
 * flushes have no messages.
 */
function optionalArray<T extends string | number | true>(
  values: ReadonlyArray<T | null>,
  written: (values: ReadonlyArray<T | null>) => string = plainArray,
): string {
  return values.every(isNull) ? '{}' : written(values)
}

function isNull(value: unknown): value is null {
  return value === null
}

const NO_KEYS = Array.from({ length: 7 }, () => null)

function keyParameters(placed: FlushPlan['placed']): Array<string | null> {
  const keyed = inOrderOfKeys(placed)
  if (keyed.length === 0) return NO_KEYS
  const keys: string[] = []
  const hashes: string[] = []
  const sessions: number[] = []
  const firsts: number[] = []
  const lasts: number[] = []
  const places: Place[] = []
  for (const [{ request }, own] of keyed) {
    keys.push(request.idempotency.key)
    hashes.push(request.idempotency.request_hash)
    sessions.push(own[0]!.session + 1)
    firsts.push(places.length + 1)
    places.push(...own)
    lasts.push(places.length)
  }
  return [
    textArray(keys),
    textArray(hashes),
    plainArray(sessions),
    plainArray(firsts),
    plainArray(lasts),
    plainArray(places.map((one) => one.behind)),
    plainArray(places.map((one) => one.known_seq)),
  ]
}

/** Requests with a key, in the order in which every flush inserts keys, so that two flushes cannot deadlock. */
function inOrderOfKeys(placed: FlushPlan['placed']): Array<[KeyedAppend, Place[]]> {
  const keyed = [...placed].filter(
    (each): each is [KeyedAppend, Place[]] => each[0].request.idempotency !== undefined,
  )
  return keyed.sort(([a], [b]) => (a.request.idempotency.key < b.request.idempotency.key ? -1 : 1))
}
