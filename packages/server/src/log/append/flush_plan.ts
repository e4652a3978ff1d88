import { plainArray, textArray } from '../../postgres/array_literal.js'
import type { Parameter } from '../../postgres/database.js'
import type { Statement } from '../../postgres/statement.js'
import { APPEND_ENTRIES, APPEND_ENTRIES_AND_KEYS, APPEND_EVENTS } from './append_queries.js'
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
  requests: OpenAppend[]
}

/** What a flush sends to the database, and where each request finds its entries in the result. */
export interface FlushPlan {
  statement: Statement
  parameters: Parameter[]
  /** The new entries, in the order of the parameters. */
  added: Place[]
  /** The entries of each request. */
  placed: ReadonlyMap<OpenAppend, Place[]>
}

/**
 * Numbers the entries of a flush within their sessions. Sessions are ordered by id, the order in which every flush
 * locks them; requests keep their order within a session. `keepsPlans`: whether the database does.
 */
export function planFlush(project_id: string, open: readonly OpenAppend[], keepsPlans: boolean): FlushPlan {
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
  const isPlain = wantedBack.length === 0 && !open.some(({ request }) => request.idempotency)
  if (isPlain && keepsPlans && parts.every(isOfEvents)) {
    const parameters = [project_id, ...sessionsOfEvents(parts), ...eventParameters(added)]
    return { statement: APPEND_EVENTS, parameters, added, placed }
  }
  const parameters = [project_id, ...sessionParameters(parts), ...entryParameters(added)]
  if (isPlain) return { statement: APPEND_ENTRIES, parameters, added, placed }
  parameters.push(...keyParameters(placed), plainArray(wantedBack))
  return { statement: APPEND_ENTRIES_AND_KEYS, parameters, added, placed }
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

/** Whether a session only gets new, unconditional events, so that its head need not be known. */
function isOfEvents({ has_messages, if_match, new_entries }: SessionPart): boolean {
  return !has_messages && if_match === null && new_entries > 0
}

function sessionsOfEvents(parts: SessionPart[]): string[] {
  return [
    plainArray(parts.map((part) => part.session_id)),
    plainArray(parts.map((part) => part.new_entries)),
    plainArray(parts.map((part) => part.new_bytes)),
  ]
}

function eventParameters(added: Place[]): string[] {
  return [
    plainArray(added.map((one) => one.session + 1)),
    plainArray(added.map((one) => one.behind)),
    plainArray(added.map((one) => one.entry.id)),
    plainArray(added.map((one) => one.entry.bytes)),
    textArray(added.map((one) => one.entry.type)),
    dataParameter(added),
  ]
}

function sessionParameters(parts: SessionPart[]): string[] {
  return [
    plainArray(parts.map((part) => part.session_id)),
    optionalArray(parts.map((part) => part.if_match)),
    plainArray(parts.map((part) => part.new_entries)),
    plainArray(parts.map((part) => part.new_tokens)),
    optionalArray(parts.map((part) => part.last_message_id)),
    optionalArray(parts.map((part) => part.has_messages || null)),
    plainArray(parts.map((part) => part.new_bytes)),
  ]
}

function entryParameters(added: Place[]): string[] {
  const roles = added.map((one) => one.entry.role)
  const formats = added.map((one) => one.entry.format)
  const metas = added.map((one) => one.entry.meta)
  return [
    plainArray(added.map((one) => one.session + 1)),
    plainArray(added.map((one) => one.behind)),
    plainArray(added.map((one) => one.entry.id)),
    optionalArray(added.map((one) => one.parent_id)),
    optionalArray(added.map((one) => one.is_first_message || null)),
    plainArray(added.map((one) => one.entry.bytes)),
    plainArray(added.map((one) => one.entry.tokens)),
    textArray(added.map((one) => one.entry.kind)),
    textArray(added.map((one) => one.entry.type)),
    optionalArray(roles, textArray),
    optionalArray(formats, textArray),
    dataParameter(added),
    metas.every(isNull) ? '[]' : `[${metas.map((meta) => meta ?? 'null').join(',')}]`,
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

function keyParameters(placed: FlushPlan['placed']): string[] {
  const keys: string[] = []
  const hashes: string[] = []
  const sessions: number[] = []
  const firsts: number[] = []
  const lasts: number[] = []
  const places: Place[] = []
  for (const [{ request }, own] of inOrderOfKeys(placed)) {
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
