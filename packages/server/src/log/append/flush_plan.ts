import { MERGED_BYTES_MAX } from '@annals/kits/limits.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  type AppendRequest,
  appendsOf,
  type IdempotencyKey,
  type PendingAppend,
  RETRACTION_TYPE,
  type Retraction,
} from './append_request.js'

/** Nulls for the parameters that most flushes leave out. */
const NO_MORE: ReadonlyArray<string | null> = Array.from({ length: 13 }, () => null)
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
    ...(isPlain ? fenceParameters(parts) : moreParameters(parts, inserted)),
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
    is_applying: isApplying,
    valid_until: isMarking ? Number.POSITIVE_INFINITY : valid_until,
  }
}

function placeEntries(sessions: Map<string, SessionPart>, { request, known }: OpenAppend): Place[] {
  const { idempotency, unanswered = false } = request
  const places: Place[] = []
  for (const append of appendsOf(request)) {
    const { session_id, if_match, unrevised_since, configs_patch, fence, apply, entries } = append
    let part = sessions.get(session_id)
    if (!part) {
      part = emptyPart(session_id)
      sessions.set(session_id, part)
    }
    const before = part.new_entries
    const isWanted = idempotency !== undefined || apply !== undefined
    for (const entry of entries) {
      const place = placeIn(part, entry, known, !unanswered && (isWanted || entry.id_given))
      places.push(place)
      if (place.behind > 0 && entry.type !== RETRACTION_TYPE) part.inserted.push(place)
    }
    // Stored entries are answered whatever the head is now.
    if (part.new_entries === before) continue
    const condition = unrevised_since === undefined ? if_match : -1 - unrevised_since
    part.fence = fence ?? part.fence
    if (condition === undefined && configs_patch === undefined && apply === undefined) continue
    part.is_plain = false
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
  is_wanted: boolean,
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
    is_wanted,
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

/** Of a flush of events, of which some may be written under fences. */
function fenceParameters(parts: SessionPart[]): ReadonlyArray<string | null> {
  if (parts.every(({ fence }) => fence === null)) return NO_MORE
  return NO_MORE.with(1, plainArray(parts.map(({ fence }) => fence)))
}

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
  const kinds: Array<string | null> = []
  const roles: Array<string | null> = []
  const formats: Array<string | null> = []
  const keys: Array<string | null> = []
  const metas: string[] = []
  let hasMetas = false
  for (const { entry, parent_id, is_first_message } of inserted) {
    parents.push(parent_id)
    firsts.push(is_first_message || null)
    tokens.push(entry.tokens)
    kinds.push(entry.is_input ? null : entry.kind)
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

/** A request to be stored, and the seqs, by id, of those of its entries that are stored already. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

/** A request of a flush that still has to be stored. */
export interface Unsettled extends OpenAppend {
  pending: PendingAppend
}

export const NONE_KNOWN: ReadonlyMap<string, number> = new Map()

/** The position of one entry: so many after its session's head, or the seq that it already has. */
export interface Place {
  entry: AppendedEntry
  part: SessionPart
  behind: number
  known_seq: number
  /** The previous message in the flush; null for an event, and for the first message, which follows the head's. */
  parent_id: string | null
  is_first_message: boolean
  /**
   * Its answer may have to be repeated: a retry is answered from what is stored, and the first answer must be identical
   * byte for byte, so both are written from the stored text.
   */
  is_wanted: boolean
  /** As the flush returned it. */
  written: WrittenEntry | undefined
}

/** An entry as the database writes it, and of a retraction, the items that it retracted. */
export type WrittenEntry = Pick<AppendedEntry, 'data' | 'meta'> & Pick<AppendAnswer, 'items'>

export interface SessionPart {
  session_id: string
  /** Its index in the flush, from 1, once all are known. */
  index: number
  /** The head's last seq; or, as a negative number, -1 - `unrevised_since`. */
  if_match: number | null
  /** The fence that was sent. */
  fence: number | null
  apply: readonly string[] | null
  new_entries: number
  new_tokens: number
  new_bytes: number
  last_message_id: string | null
  has_messages: boolean
  /** It only gets new events without keys and conditions, so that its head need not be known. */
  is_plain: boolean
  /** Merged into its configs; null: nothing. */
  configs_patch: string | null
  inserted: Place[]
  /** As the flush found it, if there is such a session and its fence and inputs are as they should be. */
  head: FoundHead | undefined
  /** It stored nothing, because an atomic request was refused. */
  is_held_back: boolean
  /** That was so because its merged configs would be too large. */
  is_too_large: boolean
}

/** A session as a flush found it: its previous head, and the time of its entries. */
export interface FoundHead {
  last_seq: number
  /** Nothing was stored, because something was retracted or compacted meanwhile: see SessionAppend. */
  is_revised: boolean
  time: string
  last_message_id: string | null
  disable_task_tracking: boolean
}

/** Retractions of a session that are carried out together: see retract_entries.sql. */
export interface RetractionGroup {
  part: SessionPart
  behind: number
  places: Place[]
  retraction: Retraction
  /** How many entries those before each take. */
  starts: number[]
}

export interface FlushPlan {
  project_id: string
  parameters: Parameter[]
  parts: SessionPart[]
  placed: Place[][]
  /** The entries that are returned as the database writes them, in the order of the parameters. */
  wanted: Place[]
  /** The retractions that are carried out, in the order of the answer's lines. */
  retractions: RetractionGroup[]
  /** The sessions that store nothing unless all of them do: those of atomic requests. */
  atomic: ReadonlySet<SessionPart>
  /** It finds no heads that take more to know, such as one with a chain. */
  is_plain: boolean
  /** Its answer says what the inputs are that it applies. */
  is_applying: boolean
  /** Time (performance.now()) until which the plan may be sent: see AppendRequest. */
  valid_until: number
}

/** Parameters that few flushes have: for idempotency keys, atomic requests, retractions, inputs, and references to blobs. */

/** A request with a key, and its entries. */
type Keyed = IdempotencyKey & { is_atomic: boolean; places: readonly Place[] }

/** `isAtomic`: some of the requests are for several sessions. */
export function keyParameters(
  open: readonly OpenAppend[],
  placed: readonly Place[][],
  isAtomic: boolean,
): string[] {
  const keyed = inOrderOfKeys(open, placed)
  const firsts: number[] = []
  const lasts: number[] = []
  const places: Place[] = []
  for (const one of keyed) {
    firsts.push(places.length + 1)
    places.push(...one.places)
    lasts.push(places.length)
  }
  return [
    textArray(keyed.map(({ key }) => key)),
    textArray(keyed.map(({ request_hash }) => request_hash)),
    plainArray(keyed.map((one) => one.places[0]!.part.index)),
    plainArray(firsts),
    plainArray(lasts),
    plainArray(places.map((one) => one.behind)),
    plainArray(places.map((one) => one.known_seq)),
    isAtomic ? plainArray(keyed.map(({ is_atomic }) => is_atomic)) : '{}',
    isAtomic ? plainArray(places.map(({ part }) => part.index)) : '{}',
  ]
}

export function atomicParameters(
  parts: readonly SessionPart[],
  atomic: ReadonlySet<SessionPart>,
): Array<string | number> {
  const patches = parts.flatMap(({ configs_patch, index }) =>
    configs_patch === null ? [] : `{"place":${index},"patch":${configs_patch}}`,
  )
  return [plainArray([...atomic].map(({ index }) => index)), `[${patches.join(',')}]`, MERGED_BYTES_MAX]
}

export function applyParameter(parts: readonly SessionPart[]): string {
  return JSON.stringify(parts.flatMap(({ apply, index }) => (apply ? { place: index, ids: apply } : [])))
}

/** Requests with a key, in the order in which every flush inserts keys, so that two flushes cannot deadlock. */
function inOrderOfKeys(open: readonly OpenAppend[], placed: readonly Place[][]): Keyed[] {
  return open
    .flatMap(({ request: { idempotency, appends } }, at): Keyed[] =>
      idempotency ? [{ ...idempotency, is_atomic: appends !== undefined, places: placed[at]! }] : [],
    )
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** The retractions that are new, a session's together and in their order. */
export function retractionGroups(open: readonly OpenAppend[], placed: readonly Place[][]): RetractionGroup[] {
  const groups: RetractionGroup[] = []
  // The newest of each session.
  const latest = new Map<SessionPart, RetractionGroup>()
  for (const [at, { request }] of open.entries()) {
    const place = placed[at]![0]!
    const { part, behind } = place
    const { retraction } = request
    if (!retraction || behind === 0) continue
    const group = latest.get(part)
    if (group && follows(group, retraction, behind)) {
      const { last } = group.retraction as NewestEntries
      group.starts.push(last)
      group.retraction = { ...retraction, last: last + retraction.last }
      group.places.push(place)
      continue
    }
    const next = { part, behind, places: [place], retraction, starts: [0] }
    latest.set(part, next)
    groups.push(next)
  }
  return groups.sort((a, b) => a.part.index - b.part.index)
}

type NewestEntries = Extract<Retraction, { last: number }>

/** Whether a retraction stands right after those of a group, and takes the same kind of the newest entries. */
function follows(group: RetractionGroup, next: Retraction, behind: number): next is NewestEntries {
  const { retraction, places } = group
  if (!('last' in retraction && 'last' in next) || behind !== group.behind + places.length) return false
  return retraction.kind === next.kind && retraction.type === next.type
}

export function retractionParameter(groups: readonly RetractionGroup[]): string | null {
  if (groups.length === 0) return null
  const parts = new Map<number, object[]>()
  for (const { part, behind, places, retraction, starts } of groups) {
    const ids = places.map(({ entry }) => entry.id)
    const retractions = parts.get(part.index) ?? []
    parts.set(part.index, retractions)
    retractions.push({ behind, ids, starts, bytes: places[0]!.entry.bytes, ...retraction })
  }
  return JSON.stringify([...parts].map(([place, retractions]) => ({ place, retractions })))
}

export function referenceParameter(inserted: readonly Place[]): string {
  const references = inserted.flatMap(({ entry, part, behind }) =>
    (entry.references ?? []).map(({ sha256 }) => ({ place: part.index, behind, sha256 })),
  )
  return JSON.stringify(references)
}
