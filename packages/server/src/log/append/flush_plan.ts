import { plainArray } from '../../postgres/array_literal.js'
import type { Parameter } from '../../postgres/database.js'
import { type AppendedEntry, RETRACTION_TYPE } from './append_request.js'
import {
  entryParameters,
  keyParameters,
  moreParameters,
  NO_MORE,
  retractionParameter,
  retractionsOf,
  sessionParameters,
} from './flush_parameters.js'
import type { OpenAppend, Place, SessionPart } from './flush_parts.js'

/** What a flush sends to the database, and where each request finds its entries in the result. */
export interface FlushPlan {
  /** Of APPEND_ENTRIES. */
  parameters: Parameter[]
  /** The entries that are returned as the database writes them, in the order of the parameters. */
  wanted: AppendedEntry[]
  /** The retractions that are carried out, in the order of the answer's lines. */
  retractions: AppendedEntry[]
  /** The entries of each request. */
  placed: ReadonlyMap<OpenAppend, Place[]>
  /** Whether the project may have consumers of changes, for which the sessions are marked. */
  marks: boolean
  /** Until when, by performance.now(), the plan may be sent: see AppendRequest. */
  valid_until: number
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
    retractionParameter(placed),
  ]
  const valid_until = Math.min(...open.map(({ request }) => request.unmarked_until))
  const marks = !(valid_until > performance.now())
  return {
    parameters,
    wanted: wantedBack.map((index) => added[index - 1]!.entry),
    retractions: retractionsOf(placed).map(([, { entry }]) => entry),
    placed,
    marks,
    valid_until: marks ? Number.POSITIVE_INFINITY : valid_until,
  }
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
    is_plain: true,
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
  if (isMessage || entry.key !== null || entry.type === RETRACTION_TYPE) part.is_plain = false
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
function isOfEvents({ is_plain, if_match, new_entries }: SessionPart): boolean {
  return is_plain && if_match === null && new_entries > 0
}
