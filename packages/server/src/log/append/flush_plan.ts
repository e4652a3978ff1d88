import { plainArray, textArray } from '../../postgres/statement.js'
import { type AppendedEntry, appendsOf, RETRACTION_TYPE } from './append_request.js'
import type { FlushPlan, OpenAppend, Place, RetractionGroup, SessionPart } from './flush_parts.js'
import {
  applyParameter,
  atomicParameters,
  keyParameters,
  referenceParameter,
  retractionGroups,
  retractionParameter,
} from './rare_parameters.js'

/** Nulls for the parameters that most flushes leave out. */
const NO_MORE = Array.from({ length: 13 }, () => null)
const NO_KEYS = Array.from({ length: 9 }, () => null)
const NOT_ATOMIC = Array.from({ length: 3 }, () => null)
const NO_RETRACTIONS: RetractionGroup[] = []

/**
 * Numbers the entries of a flush within their sessions. Sessions are ordered by id, the order in which every flush
 * locks them; requests keep their order within a session. `isSecondLook`: heads that the plain statement does not take
 * are known to be there.
 */
export function planFlush(project_id: string, open: readonly OpenAppend[], isSecondLook = false): FlushPlan {
  const sessions = new Map<string, SessionPart>()
  const placed: Place[][] = []
  const atomic = new Set<SessionPart>()
  let valid_until = Number.POSITIVE_INFINITY
  let hasKeys = false
  let hasRetractions = false
  let chains: boolean | undefined
  for (const one of open) {
    const places = placeEntries(sessions, one)
    placed.push(places)
    const { unmarked_until, appends, idempotency, retraction, proof } = one.request
    valid_until = Math.min(valid_until, unmarked_until)
    if (appends) for (const { part } of places) atomic.add(part)
    if (idempotency) hasKeys = true
    if (retraction) hasRetractions = true
    if (proof !== undefined) chains = proof
  }
  const parts = [...sessions.values()].sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
  const inserted: Place[] = []
  const wanted: Place[] = []
  const wantedPlaces: number[] = []
  let isPlain = atomic.size === 0 && chains === undefined && !isSecondLook
  let isReferring = false
  let isDated = false
  let isApplying = false
  for (const [index, part] of parts.entries()) {
    part.index = index + 1
    if (!part.is_plain || part.new_entries === 0) isPlain = false
    if (part.apply) isApplying = true
    for (const place of part.inserted) {
      inserted.push(place)
      if (place.entry.references) isReferring = true
      if (place.entry.occurred_at !== null) isDated = true
      if (!place.is_wanted) continue
      wanted.push(place)
      wantedPlaces.push(inserted.length)
    }
  }
  const retractions = hasRetractions ? retractionGroups(open, placed) : NO_RETRACTIONS
  const isMarking = valid_until <= performance.now()
  const parameters = [
    project_id,
    ...plainParameters(parts, inserted),
    isDated ? plainArray(inserted.map(({ entry }) => entry.occurred_at)) : null,
    isMarking,
    ...(isPlain ? NO_MORE : moreParameters(parts, inserted)),
    ...(hasKeys ? keyParameters(open, placed, atomic.size > 0) : NO_KEYS),
    wanted.length === 0 ? null : plainArray(wantedPlaces),
    hasRetractions ? retractionParameter(retractions) : null,
    isReferring ? referenceParameter(inserted) : null,
    ...(atomic.size > 0 ? atomicParameters(parts, atomic) : NOT_ATOMIC),
    isApplying ? applyParameter(parts) : null,
    chains ?? false,
  ]
  return {
    project_id,
    parameters,
    parts,
    placed,
    wanted,
    retractions,
    atomic,
    is_plain: isPlain,
    valid_until: isMarking ? Number.POSITIVE_INFINITY : valid_until,
  }
}

/** Adds what a request appends to the parts of its sessions. */
function placeEntries(sessions: Map<string, SessionPart>, { request, known }: OpenAppend): Place[] {
  const isRepeatable = request.idempotency !== undefined
  const places: Place[] = []
  for (const append of appendsOf(request)) {
    const { session_id, if_match, unrevised_since, configs_patch, fence, apply, entries } = append
    let part = sessions.get(session_id)
    if (!part) {
      part = emptyPart(session_id)
      sessions.set(session_id, part)
    }
    const before = part.new_entries
    for (const entry of entries) {
      const place = placeIn(part, entry, known, isRepeatable)
      places.push(place)
      if (place.behind > 0 && entry.type !== RETRACTION_TYPE) part.inserted.push(place)
    }
    // What is already stored is answered whatever the head is now, and changes nothing more.
    if (part.new_entries === before) continue
    const condition = unrevised_since === undefined ? if_match : -1 - unrevised_since
    const isFenced = fence !== undefined || apply !== undefined
    if (condition === undefined && configs_patch === undefined && !isFenced) continue
    part.is_plain = false
    part.fence = fence ?? part.fence
    part.apply = apply ?? part.apply
    part.if_match = condition ?? part.if_match
    part.configs_patch = configs_patch ?? part.configs_patch
  }
  return places
}

function emptyPart(session_id: string): SessionPart {
  return {
    session_id,
    index: 0,
    if_match: null,
    fence: null,
    apply: null,
    new_entries: 0,
    new_tokens: 0,
    new_bytes: 0,
    last_message_id: null,
    has_messages: false,
    is_plain: true,
    configs_patch: null,
    inserted: [],
    head: undefined,
    is_held_back: false,
    is_too_large: false,
  }
}

function placeIn(
  part: SessionPart,
  entry: AppendedEntry,
  known: ReadonlyMap<string, number>,
  isRepeatable: boolean,
): Place {
  const isMessage = entry.kind === 'message'
  if (isMessage) part.has_messages = true
  if (isMessage || entry.key !== null || entry.type === RETRACTION_TYPE) part.is_plain = false
  const known_seq = known.size === 0 ? 0 : (known.get(entry.id) ?? 0)
  const isNew = known_seq === 0
  const parent_id = isMessage && isNew ? part.last_message_id : null
  if (isNew) {
    part.new_entries += 1
    part.new_tokens += entry.tokens
    part.new_bytes += entry.bytes
    if (isMessage) part.last_message_id = entry.id
  }
  return {
    entry,
    part,
    behind: isNew ? part.new_entries : 0,
    known_seq,
    parent_id,
    is_first_message: isMessage && isNew && parent_id === null,
    is_wanted: isRepeatable || entry.id_given,
    written: undefined,
  }
}

/** The parameters that every flush has, by session and by entry: see APPEND_ENTRIES. */
function plainParameters(parts: SessionPart[], inserted: Place[]): string[] {
  const session_ids: string[] = []
  const new_entries: number[] = []
  const new_bytes: number[] = []
  for (const part of parts) {
    session_ids.push(part.session_id)
    new_entries.push(part.new_entries)
    new_bytes.push(part.new_bytes)
  }
  const places: number[] = []
  const behind: number[] = []
  const ids: string[] = []
  const bytes: number[] = []
  const types: Array<string | null> = []
  const data: string[] = []
  for (const place of inserted) {
    places.push(place.part.index)
    behind.push(place.behind)
    ids.push(place.entry.id)
    bytes.push(place.entry.bytes)
    types.push(place.entry.type)
    data.push(place.entry.data)
  }
  return [
    ...[plainArray(session_ids), plainArray(new_entries), plainArray(new_bytes)],
    ...[plainArray(places), plainArray(behind), plainArray(ids), plainArray(bytes)],
    ...[textArray(types), `[${data.join(',')}]`],
  ]
}

/** What a flush with messages, entries' keys or conditions has as well. */
function moreParameters(parts: SessionPart[], inserted: Place[]): Array<string | null> {
  const if_matches: Array<number | null> = []
  const fences: Array<number | null> = []
  const new_tokens: number[] = []
  const last_messages: Array<string | null> = []
  const ofMessages: string[] = []
  for (const part of parts) {
    if_matches.push(part.if_match)
    fences.push(part.fence)
    new_tokens.push(part.new_tokens)
    last_messages.push(part.last_message_id)
    if (part.has_messages) ofMessages.push(part.session_id)
  }
  const parents: Array<string | null> = []
  const firsts: Array<true | null> = []
  const tokens: number[] = []
  const kinds: string[] = []
  const roles: Array<string | null> = []
  const formats: Array<string | null> = []
  const keys: Array<string | null> = []
  const metas: string[] = []
  let hasMetas = false
  for (const { entry, parent_id, is_first_message } of inserted) {
    parents.push(parent_id)
    firsts.push(is_first_message || null)
    tokens.push(entry.tokens)
    kinds.push(entry.kind)
    roles.push(entry.role)
    formats.push(entry.format)
    keys.push(entry.key)
    metas.push(entry.meta ?? 'null')
    if (entry.meta !== null) hasMetas = true
  }
  return [
    ...[optional(if_matches), optional(fences), plainArray(new_tokens), optional(last_messages)],
    ...[optional(parents), optional(firsts), plainArray(tokens), textArray(kinds)],
    ...[optional(roles, textArray), optional(formats, textArray), optional(keys, textArray)],
    hasMetas ? `[${metas.join(',')}]` : '[]',
    ofMessages.length === 0 ? null : plainArray(ofMessages),
  ]
}

/** An array without any value may be empty, because `unnest` fills up with nulls. */
function optional<T extends string | number | true>(
  values: ReadonlyArray<T | null>,
  written: (values: ReadonlyArray<T | null>) => string = plainArray,
): string {
  for (const value of values) if (value !== null) return written(values)
  return '{}'
}
