import { LRUCache } from 'lru-cache'

/** How long a count is good for: only the weights of words, and where they are looked up first, depend on it. */
const KNOWN_MS = 10_000
/** Memory of all projects: a word has a kilobyte or two where a question has much in quotes. */
const BYTES_MAX = 4 * 1024 * 1024
const ENTRY_BYTES = 128

/**
 * How frequent words are in the newest segments of a project, as recent questions found out: counting the runs that have a
 * frequent word takes as long as finding those that answer.
 */
export class WordCounts {
  private readonly known = new LRUCache<string, number>({
    ttl: KNOWN_MS,
    maxSize: BYTES_MAX,
    sizeCalculation: (_count, key) => 2 * key.length + ENTRY_BYTES,
  })

  /** Counts of all runs, then of those that have each word; null where it is not known. `among`: which runs. */
  read(among: string, words: readonly string[]): (number | null)[] {
    return keysOf(among, words).map((key) => this.known.get(key) ?? null)
  }

  /** Adds counts, as `read` returns them. A known one does not become younger. */
  add(among: string, words: readonly string[], counts: readonly number[]): void {
    for (const [index, key] of keysOf(among, words).entries())
      if (counts[index] !== undefined && !this.known.has(key)) this.known.set(key, counts[index])
  }
}

function keysOf(among: string, words: readonly string[]): string[] {
  return ['', ...words].map((word) => `${among} ${word}`)
}
