import { MERGED_BYTES_MAX } from '../../limits.js'
import { plainArray, textArray } from '../../postgres/statement.js'
import type { IdempotencyKey, Retraction } from './append_request.js'
import type { OpenAppend, Place, RetractionGroup, SessionPart } from './flush_parts.js'

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

/** Whether a retraction stands right behind those of a group, and takes the same kind of the newest entries. */
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

/** The references to blobs of new entries. */
export function referenceParameter(inserted: readonly Place[]): string {
  const references = inserted.flatMap(({ entry, part, behind }) =>
    (entry.references ?? []).map(({ sha256 }) => ({ place: part.index, behind, sha256 })),
  )
  return JSON.stringify(references)
}
