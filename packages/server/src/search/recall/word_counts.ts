/** How long a count is good for: only the weights of words, and where they are looked up first, depend on it. */
const KNOWN_MS = 10_000
const KNOWN_MAX = 10_000

/**
 * How frequent words are in the newest segments of a project, as questions of a moment ago found out: to count the runs
 * that have a frequent word takes as long as to find those that answer.
 */
export class WordCounts {
  private readonly known = new Map<string, { count: number; until: number }>()

  /** Counts of runs: of all, and of those that have each word. Null where it is not known. `among`: which runs. */
  read(among: string, words: readonly string[]): (number | null)[] {
    const now = performance.now()
    return ['', ...words].map((word) => {
      const known = this.known.get(`${among} ${word}`)
      return known && known.until > now ? known.count : null
    })
  }

  /** Adds what was found out. `counts`: as `read` returns them. */
  add(among: string, words: readonly string[], counts: readonly number[]): void {
    if (this.known.size > KNOWN_MAX) this.known.clear()
    const until = performance.now() + KNOWN_MS
    for (const [index, word] of ['', ...words].entries()) {
      const key = `${among} ${word}`
      const known = this.known.get(key)
      const count = counts[index]
      if (count !== undefined && !(known && known.until > performance.now()))
        this.known.set(key, { count, until })
    }
  }
}
