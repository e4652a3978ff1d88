import { MERGED_BYTES_MAX } from '../../limits.js'
import { plainArray, textArray } from '../../postgres/array_literal.js'
import type { AppendedEntry, IdempotencyKey, Retraction } from './append_request.js'
import type { OpenAppend, Place, PlacedAppends, SessionPart } from './flush_parts.js'

/** The parameters of APPEND_ENTRIES. */

type KeyedAppend = OpenAppend & { request: { idempotency: IdempotencyKey } }

export function sessionParameters(parts: SessionPart[]): string[] {
  return [
    plainArray(parts.map((part) => part.session_id)),
    plainArray(parts.map((part) => part.new_entries)),
    plainArray(parts.map((part) => part.new_bytes)),
  ]
}

export function entryParameters(added: Place[]): string[] {
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
export const NO_MORE = Array.from({ length: 12 }, () => null)

export function moreParameters(parts: SessionPart[], added: Place[]): Array<string | null> {
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

export function keyParameters(open: readonly OpenAppend[], placed: PlacedAppends): Array<string | null> {
  const keyed = inOrderOfKeys(open, placed)
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

/** What APPEND_ATOMICALLY has beyond APPEND_ENTRIES. */
export function atomicParameters(
  parts: SessionPart[],
  atomic: ReadonlySet<number>,
  open: readonly OpenAppend[],
  placed: PlacedAppends,
): Array<string | number> {
  const patches = parts.flatMap(({ configs_patch }, session) =>
    configs_patch === null ? [] : `{"place":${session + 1},"patch":${configs_patch}}`,
  )
  const keyed = inOrderOfKeys(open, placed)
  return [
    plainArray([...atomic].map((session) => session + 1)),
    `[${patches.join(',')}]`,
    MERGED_BYTES_MAX,
    plainArray(keyed.map(([{ request }]) => request.appends !== undefined)),
    plainArray(keyed.flatMap(([, places]) => places.map(({ session }) => session + 1))),
  ]
}

/** Requests with a key, in the order in which every flush inserts keys, so that two flushes cannot deadlock. */
function inOrderOfKeys(
  open: readonly OpenAppend[],
  placed: PlacedAppends,
): Array<[KeyedAppend, readonly Place[]]> {
  const keyed = open.filter((one): one is KeyedAppend => one.request.idempotency !== undefined)
  return keyed
    .sort((a, b) => (a.request.idempotency.key < b.request.idempotency.key ? -1 : 1))
    .map((one) => [one, placed.get(one)!])
}

/** Retractions of a session that are carried out together: see RETRACT. */
export interface RetractionGroup {
  session: number
  session_id: string
  behind: number
  entries: AppendedEntry[]
  retraction: Retraction
  /** How many entries those before each take. */
  starts: number[]
}

/** The retractions that are new, a session's together and in their order. */
export function retractionGroups(open: readonly OpenAppend[], placed: PlacedAppends): RetractionGroup[] {
  const groups: RetractionGroup[] = []
  // The newest of each session.
  const latest = new Map<number, RetractionGroup>()
  for (const one of open) {
    const { retraction } = one.request
    if (!retraction) continue
    const { entry, session, session_id, behind } = placed.get(one)![0]!
    if (behind === 0) continue
    const group = latest.get(session)
    if (group && follows(group, retraction, behind)) {
      const { last } = group.retraction as NewestEntries
      group.starts.push(last)
      group.retraction = { ...retraction, last: last + retraction.last }
      group.entries.push(entry)
      continue
    }
    const next = { session, session_id, behind, entries: [entry], retraction, starts: [0] }
    latest.set(session, next)
    groups.push(next)
  }
  return groups.sort((a, b) => a.session - b.session)
}

type NewestEntries = Extract<Retraction, { last: number }>

/** Whether a retraction stands right behind those of a group, and takes the same kind of the newest entries. */
function follows(group: RetractionGroup, next: Retraction, behind: number): next is NewestEntries {
  const { retraction, entries } = group
  if (!('last' in retraction && 'last' in next) || behind !== group.behind + entries.length) return false
  return retraction.kind === next.kind && retraction.type === next.type
}

export function retractionParameter(groups: readonly RetractionGroup[]): string | null {
  if (groups.length === 0) return null
  const parts = new Map<number, object[]>()
  for (const { session, behind, entries, retraction, starts } of groups) {
    const ids = entries.map(({ id }) => id)
    const retractions = parts.get(session) ?? []
    parts.set(session, retractions)
    retractions.push({ behind, ids, starts, bytes: entries[0]!.bytes, ...retraction })
  }
  return JSON.stringify([...parts].map(([session, retractions]) => ({ place: session + 1, retractions })))
}

/** The references to blobs of new entries; null where there are none. */
export function referenceParameter(added: readonly Place[]): string | null {
  if (!added.some(({ entry }) => entry.references)) return null
  const references = added.flatMap(({ entry, session, behind }) =>
    (entry.references ?? []).map(({ sha256 }) => ({ place: session + 1, behind, sha256 })),
  )
  return references.length === 0 ? null : JSON.stringify(references)
}
