import { plainArray, textArray } from '../database/array_literal.js'
import type { Parameter } from '../database/database.js'
import type { AppendedEntry, AppendRequest } from './append_request.js'

/** A request that is to be stored, and those of its entries that are stored already: their seqs by id. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

/** Where one entry will stand: so many places behind its session's head, or at a seq that it has already. */
export interface Place {
  entry: AppendedEntry
  behind: number
  known_seq: number
  /** The message before it in the flush; undefined for an event, and for the first message, which follows the head's. */
  parent_id: string | undefined
  is_first_message: boolean
}

/** One session's part of a flush. */
interface SessionPart {
  session_id: string
  if_match: number | null
  new_entries: number
  new_tokens: number
  last_message_id: string | null
  requests: OpenAppend[]
}

/** What a flush asks of the database, and where each request will be found in its answer. */
export interface FlushPlan {
  parameters: Parameter[]
  /** The new entries, in the order in which the parameters name them. */
  entries: AppendedEntry[]
  /** In the order of the requests: the place of the request's session in the answer, from 0, and of its entries. */
  placed: Array<{ session: number; places: Place[] }>
}

/**
 * Numbers the entries of a flush within their sessions. Sessions stand in the order of their ids, which is the order in
 * which every flush locks them; requests keep their order within a session.
 */
export function planFlush(project_id: string, open: readonly OpenAppend[]): FlushPlan {
  const parts = partsOf(open)
  const placed = new Map<OpenAppend, { session: number; places: Place[] }>()
  parts.forEach((part, session) => {
    for (const one of part.requests) placed.set(one, { session, places: place(part, one) })
  })
  const inOrder = open.map((one) => placed.get(one)!)
  const entries = inOrder.flatMap(({ session, places }) =>
    places.filter(({ behind }) => behind > 0).map((one) => ({ session: session + 1, ...one })),
  )
  const parameters = [
    project_id,
    ...sessionParameters(parts),
    ...entryParameters(entries),
    ...keyParameters(open, inOrder),
    plainArray(wantedBack(open, inOrder)),
  ]
  return { parameters, entries: entries.map(({ entry }) => entry), placed: inOrder }
}

/**
 * The entries whose answer may have to be given again: a retry is answered from what is stored, and the first answer
 * must be the same to the byte, so it is written from the same text.
 */
function wantedBack(open: readonly OpenAppend[], placed: FlushPlan['placed']): number[] {
  const wanted: number[] = []
  let at = 0
  open.forEach(({ request }, index) => {
    for (const { entry, behind } of placed[index]!.places) {
      if (behind === 0) continue
      at += 1
      if (request.idempotency || entry.id_given) wanted.push(at)
    }
  })
  return wanted
}

function partsOf(open: readonly OpenAppend[]): SessionPart[] {
  const parts = new Map<string, SessionPart>()
  for (const one of open) {
    const { session_id, if_match, entries } = one.request
    let part = parts.get(session_id)
    if (!part) {
      part = {
        session_id,
        if_match: null,
        new_entries: 0,
        new_tokens: 0,
        last_message_id: null,
        requests: [],
      }
      parts.set(session_id, part)
    }
    // A request that is stored already is answered whatever the head is now.
    if (if_match !== undefined && one.known.size < entries.length) part.if_match = if_match
    part.requests.push(one)
  }
  return [...parts.values()].sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
}

function place(part: SessionPart, { request, known }: OpenAppend): Place[] {
  return request.entries.map((entry) => {
    const known_seq = known.get(entry.id) ?? 0
    if (known_seq > 0) return { entry, behind: 0, known_seq, parent_id: undefined, is_first_message: false }
    part.new_entries += 1
    part.new_tokens += entry.tokens
    const isMessage = entry.kind === 'message'
    const before = isMessage ? part.last_message_id : null
    if (isMessage) part.last_message_id = entry.id
    return {
      entry,
      behind: part.new_entries,
      known_seq: 0,
      parent_id: before ?? undefined,
      is_first_message: isMessage && before === null,
    }
  })
}

function sessionParameters(parts: SessionPart[]): string[] {
  return [
    plainArray(parts.map((part) => part.session_id)),
    plainArray(parts.map((part) => part.if_match)),
    plainArray(parts.map((part) => part.new_entries)),
    plainArray(parts.map((part) => part.new_tokens)),
    plainArray(parts.map((part) => part.last_message_id)),
    plainArray(
      parts.map((part) =>
        part.requests.some(({ request }) => request.entries.some(({ kind }) => kind === 'message')),
      ),
    ),
  ]
}

function entryParameters(entries: Array<Place & { session: number }>): string[] {
  return [
    plainArray(entries.map((one) => one.session)),
    plainArray(entries.map((one) => one.behind)),
    plainArray(entries.map((one) => one.entry.id)),
    plainArray(entries.map((one) => one.parent_id ?? null)),
    plainArray(entries.map((one) => one.is_first_message)),
    plainArray(entries.map((one) => one.entry.bytes)),
    plainArray(entries.map((one) => one.entry.tokens)),
    textArray(entries.map((one) => one.entry.kind)),
    textArray(entries.map((one) => one.entry.type)),
    textArray(entries.map((one) => one.entry.role)),
    textArray(entries.map((one) => one.entry.format)),
    `[${entries.map((one) => one.entry.data).join(',')}]`,
    `[${entries.map((one) => one.entry.meta ?? 'null').join(',')}]`,
  ]
}

function keyParameters(open: readonly OpenAppend[], placed: FlushPlan['placed']): string[] {
  const keys: string[] = []
  const hashes: string[] = []
  const sessions: number[] = []
  const firsts: number[] = []
  const lasts: number[] = []
  const places: Place[] = []
  open.forEach(({ request }, index) => {
    if (!request.idempotency) return
    const { session, places: own } = placed[index]!
    keys.push(request.idempotency.key)
    hashes.push(request.idempotency.request_hash)
    sessions.push(session + 1)
    firsts.push(places.length + 1)
    places.push(...own)
    lasts.push(places.length)
  })
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
