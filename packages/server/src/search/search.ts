import { isExact } from '@annals/messages/search'
import { type Finding, type FoundEntry, type FoundPlace, findCandidates, readFound } from './find_entries.js'

/** After which time a page ends though it is not full. */
const PAGE_MS_MAX = 1_000
/** The newest entries that match, which are ordered by relevance. */
const RANKED = { entries: 200, bytes: 8 * 1024 * 1024 }
/** Entries that are looked at for words beside each other at once, at most: the first few often fill the page. */
const INEXACT_ENTRIES = 200

/** A page of a search; `next` is where the next one begins. */
export interface FoundPage<Place> {
  items: FoundEntry[]
  next: Place | undefined
}

/**
 * A page, the newest first. It ends early where little was found in a second: then it may be short or empty though more
 * follows.
 */
export async function findNewest(
  finding: Finding,
  after: FoundPlace | undefined,
): Promise<FoundPage<FoundPlace>> {
  const { search, limit } = finding
  const until = performance.now() + PAGE_MS_MAX
  const items: FoundEntry[] = []
  const most = isExact(search.terms) ? limit + 1 : Math.max(limit + 1, INEXACT_ENTRIES)
  for await (const { candidates, next } of findCandidates(finding, after, [
    Math.min(2 * limit, most),
    most,
  ])) {
    for await (const entry of readFound(finding, candidates)) {
      if (items.length === limit) return { items, next: items.at(-1)! }
      items.push(entry)
    }
    if (!next || performance.now() > until) return { items, next }
  }
  return { items, next: undefined }
}

/** Where a page by relevance goes on: what it ranks begins at an entry, and so many of it were shown. */
export interface RankedPlace {
  newest: FoundPlace
  shown: number
}

/** A page of the newest entries that match, in the order of how well they do. */
export async function findRelevant(
  finding: Finding,
  after: RankedPlace | undefined,
): Promise<FoundPage<RankedPlace>> {
  const until = performance.now() + PAGE_MS_MAX
  const ranked: FoundEntry[] = []
  let bytes = 0
  let newest = after?.newest
  search: for await (const { candidates, next } of findCandidates(finding, newest, [RANKED.entries])) {
    const [first] = candidates
    // Behind the place right after the first one, which is so part of it again.
    newest ??= first && { ...first, seq: first.seq + 1 }
    for await (const entry of readFound(finding, candidates)) {
      ranked.push(entry)
      bytes += entry.bytes
      if (ranked.length === RANKED.entries || bytes > RANKED.bytes) break search
    }
    if (!next || performance.now() > until) break
  }
  ranked.sort((a, b) => b.score - a.score)
  const shown = after?.shown ?? 0
  const items = ranked.slice(shown, shown + finding.limit)
  const isLast = shown + items.length >= ranked.length || !newest
  return { items, next: isLast ? undefined : { newest: newest!, shown: shown + items.length } }
}
