import { isExact } from '@annals/messages/search'
import { type Finding, type FoundEntry, type FoundPlace, findCandidates, readFound } from './find_entries.js'

/** After which time a page ends though it is not full. */
const PAGE_MS_MAX = 1_000
/** The newest entries that match, which are ordered by relevance; and bytes of entries that are read to find them. */
const RANKED = { entries: 200, bytes: 8 * 1024 * 1024 }
/**
 * Entries that are looked at for words beside each other, at once and for a page, at most: the first few often fill it,
 * and where the words never stand together, each page would otherwise take a second of everybody's processor.
 */
const INEXACT_ENTRIES = { at_once: 200, page: 400 }

/** A page of a search; `next` is where the next one begins. */
export interface FoundPage<Place> {
  items: FoundEntry[]
  next: Place | undefined
}

/**
 * A page, the newest first. It ends early where little was found in a second, or among so many entries that were read:
 * then it may be short or empty though more follows.
 */
export async function findNewest(
  finding: Finding,
  after: FoundPlace | undefined,
): Promise<FoundPage<FoundPlace>> {
  const { search, limit } = finding
  const until = performance.now() + PAGE_MS_MAX
  const items: FoundEntry[] = []
  // Events that views fold are left out only when they are read.
  const is_exact = isExact(search.terms) && search.noise !== false
  const most = is_exact ? limit + 1 : Math.max(limit + 1, INEXACT_ENTRIES.at_once)
  let looked_at = 0
  for await (const { candidates, next } of findCandidates(finding, after, [
    Math.min(2 * limit, most),
    most,
  ])) {
    for await (const { found, last } of readFound(finding, candidates)) {
      for (const entry of found) {
        if (items.length === limit) return { items, next: items.at(-1)! }
        items.push(entry)
      }
      // Two hundred entries of a megabyte take long to read.
      if (last !== candidates.at(-1) && performance.now() > until) return { items, next: last }
    }
    looked_at += candidates.length
    const is_enough = !is_exact && looked_at >= INEXACT_ENTRIES.page
    if (!next || is_enough || performance.now() > until) return { items, next }
  }
  return { items, next: undefined }
}

/** Where a page by relevance goes on: the entry at which the ranked ones begin, and how many of them were shown. */
export interface RankedPlace {
  newest: FoundPlace
  shown: number
}

/**
 * A page of the newest entries that match, in the order of how well they do. The pages of as many as are ranked, or
 * were found within a second and what is read at most, are followed by pages of the next ones.
 */
export async function findRelevant(
  finding: Finding,
  after: RankedPlace | undefined,
): Promise<FoundPage<RankedPlace>> {
  const until = performance.now() + PAGE_MS_MAX
  const ranked: FoundEntry[] = []
  let bytes = 0
  let newest = after?.newest
  let rest: FoundPlace | undefined
  search: for await (const { candidates, next } of findCandidates(finding, newest, [RANKED.entries])) {
    const [first] = candidates
    // The place right after the first one becomes part of it again.
    newest ??= first && { ...first, seq: first.seq + 1 }
    rest = next
    for await (const { found, last, bytes: read } of readFound(finding, candidates)) {
      const room = RANKED.entries - ranked.length
      ranked.push(...found.slice(0, room))
      bytes += read
      rest = found.length > room ? ranked.at(-1) : last === candidates.at(-1) ? next : last
      if (!rest || ranked.length === RANKED.entries || bytes > RANKED.bytes) break search
    }
    if (performance.now() > until) break
  }
  ranked.sort((a, b) => b.score - a.score)
  const shown = after?.shown ?? 0
  const items = ranked.slice(shown, shown + finding.limit)
  if (newest && shown + items.length < ranked.length)
    return { items, next: { newest, shown: shown + items.length } }
  return { items, next: rest && { newest: rest, shown: 0 } }
}
