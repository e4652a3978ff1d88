import { phrasesFirst, placeOf, type RecalledEntry, type RecalledSession } from '../recalled.js'

/**
 * How much a place in each list counts: 1 / (k + rank). What is first by its vector alone comes after the first five by
 * words, and what both have high comes first, also where a small model is often wrong.
 */
const FUSED = { k: 10, words: 1, vectors: 0.7, scale: 100 }
const ENTRIES_OF_SESSION = 3

/** Sums of reciprocal ranks, by key; keys in each list, the best first. */
function reciprocalRanks(byWords: readonly string[], byVectors: readonly string[]): Map<string, number> {
  const scores = new Map<string, number>()
  for (const [keys, weight] of [
    [byWords, FUSED.words],
    [byVectors, FUSED.vectors],
  ] as const)
    for (const [rank, key] of [...new Set(keys)].entries())
      scores.set(key, (scores.get(key) ?? 0) + (FUSED.scale * weight) / (FUSED.k + rank + 1))
  return scores
}

/** One list of two, best first. Phrases that were said go before all else, as they do by words. */
export function fusedEntries<Entry extends RecalledEntry>(
  byWords: readonly Entry[],
  byVectors: readonly Entry[],
): Entry[] {
  const scores = reciprocalRanks(byWords.map(placeOf), byVectors.map(placeOf))
  const entries = new Map([...byVectors, ...byWords].map((entry) => [placeOf(entry), entry]))
  const fused = [...entries].map(([place, entry]) => ({ ...entry, score: scores.get(place)! }))
  return phrasesFirst(fused, ({ is_phrase }) => is_phrase)
}

/** The same for sessions, each with its best entries. A session's place by vectors is that of its first entry there. */
export function fusedSessions(
  byWords: readonly RecalledSession[],
  byVectors: readonly RecalledEntry[],
): RecalledSession[] {
  const scores = reciprocalRanks(
    byWords.map(({ session_id }) => session_id),
    byVectors.map(({ session_id }) => session_id),
  )
  const said = new Map(byWords.map(({ session_id, entries }) => [session_id, entries]))
  const fused = [...scores].map(([session_id, score]) => {
    const near = byVectors.filter((entry) => entry.session_id === session_id)
    const entries = fusedEntries(said.get(session_id) ?? [], near)
    return { session_id, score, entries: entries.slice(0, ENTRIES_OF_SESSION) }
  })
  return phrasesFirst(fused, ({ entries }) => entries[0]!.is_phrase)
}
