import { plainArray } from '../../postgres/array_literal.js'
import type { Parameter } from '../../postgres/database.js'
import type { StoredFunction } from '../../postgres/stored_function.js'
import {
  APPEND_ATOMICALLY,
  APPEND_ENTRIES,
  APPEND_MARKED_ENTRIES,
  APPEND_REFERRING_ENTRIES,
} from './append_queries.js'
import { type AppendedEntry, appendsOf, RETRACTION_TYPE } from './append_request.js'
import {
  atomicParameters,
  entryParameters,
  keyParameters,
  moreParameters,
  NO_MORE,
  type RetractionGroup,
  referenceParameter,
  retractionGroups,
  retractionParameter,
  sessionParameters,
} from './flush_parameters.js'
import type { OpenAppend, Place, SessionPart } from './flush_parts.js'

/** What a flush sends to the database, and where each request finds its entries in the result. */
export interface FlushPlan {
  project_id: string
  /** Which of the functions that append. */
  call: StoredFunction
  parameters: Parameter[]
  /** The entries that are returned as the database writes them, in the order of the parameters. */
  wanted: AppendedEntry[]
  /** The retractions that are carried out, in the order of the answer's lines. */
  retractions: RetractionGroup[]
  /** The entries of each request. */
  placed: ReadonlyMap<OpenAppend, Place[]>
  /** The indexes of the sessions that store nothing unless all of them do: those of atomic requests. */
  atomic: ReadonlySet<number>
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
    for (const { one, from, entries } of part.appends) {
      const places = placed.get(one) ?? []
      placed.set(one, places)
      entries.forEach((entry, index) => {
        const each = place(part, session, entry, one.known)
        places[from + index] = each
        // A retraction is stored when it is carried out.
        if (each.behind === 0 || entry.type === RETRACTION_TYPE) return
        added.push(each)
        if (one.request.idempotency || entry.id_given) wantedBack.push(added.length)
      })
    }
  })
  const atomic = new Set<number>()
  let valid_until = Number.POSITIVE_INFINITY
  for (const one of open) {
    valid_until = Math.min(valid_until, one.request.unmarked_until)
    if (one.request.appends) for (const { session } of placed.get(one)!) atomic.add(session)
  }
  const isPlain = parts.every(isOfEvents)
  // See STORE_ATOMICALLY.
  if (isPlain && atomic.size > 0) for (const session of parts.keys()) atomic.add(session)
  const retractions = retractionGroups(open, placed)
  const parameters = [
    project_id,
    ...sessionParameters(parts),
    ...entryParameters(added),
    ...(isPlain ? NO_MORE : moreParameters(parts, added)),
    ...keyParameters(open, placed),
    wantedBack.length === 0 ? null : plainArray(wantedBack),
    retractionParameter(retractions),
    ...(atomic.size > 0 ? atomicParameters(parts, atomic, open, placed) : []),
  ]
  const references = referenceParameter(added)
  if (references || atomic.size > 0) parameters.push(references)
  const isUnmarked = !references && atomic.size === 0 && valid_until > performance.now()
  const withMarks = references ? APPEND_REFERRING_ENTRIES : APPEND_MARKED_ENTRIES
  return {
    project_id,
    // The last two mark as well, whatever is known of consumers.
    call: atomic.size > 0 ? APPEND_ATOMICALLY : isUnmarked ? APPEND_ENTRIES : withMarks,
    parameters,
    wanted: wantedBack.map((index) => added[index - 1]!.entry),
    retractions,
    placed,
    atomic,
    valid_until: isUnmarked ? valid_until : Number.POSITIVE_INFINITY,
  }
}

function partsOf(open: readonly OpenAppend[]): SessionPart[] {
  const parts = new Map<string, SessionPart>()
  for (const one of open) {
    let from = 0
    for (const append of appendsOf(one.request)) {
      const { session_id, if_match, configs_patch, entries } = append
      let part = parts.get(session_id)
      if (!part) {
        part = emptyPart(session_id)
        parts.set(session_id, part)
      }
      // What is already stored is answered whatever the head is now, and changes nothing more.
      if (one.known.size === 0 || entries.some(({ id }) => !one.known.has(id))) {
        part.if_match = if_match ?? part.if_match
        part.configs_patch = configs_patch ?? part.configs_patch
      }
      part.appends.push({ one, from, session_id, entries })
      from += entries.length
    }
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
    configs_patch: null,
    appends: [],
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
  const { session_id } = part
  const known_seq = known.size === 0 ? 0 : (known.get(entry.id) ?? 0)
  if (known_seq > 0)
    return { entry, session_id, session, behind: 0, known_seq, parent_id: null, is_first_message: false }
  part.new_entries += 1
  part.new_tokens += entry.tokens
  part.new_bytes += entry.bytes
  const parent_id = isMessage ? part.last_message_id : null
  if (isMessage) part.last_message_id = entry.id
  const is_first_message = isMessage && parent_id === null
  return { entry, session_id, session, behind: part.new_entries, known_seq, parent_id, is_first_message }
}

/** Whether a session only gets new, unconditional events without keys, so that its head need not be known. */
function isOfEvents({ is_plain, if_match, configs_patch, new_entries }: SessionPart): boolean {
  return is_plain && if_match === null && configs_patch === null && new_entries > 0
}
