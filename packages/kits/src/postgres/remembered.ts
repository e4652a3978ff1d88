import { LRUCache } from 'lru-cache'

const REMEMBERED_MAX = 10_000

/**
 * Facts of the database that are relied on for `kept_ms`. From half that age on, one in use is read again in the
 * background, so that nobody waits for it.
 */
export class Remembered<Fact extends object> {
  private readonly known = new LRUCache<string, { fact: Fact; read_at: number }>({ max: REMEMBERED_MAX })
  private readonly pending = new Map<string, { since: number; reading: Promise<Fact> }>()

  constructor(
    private readonly kept_ms: number,
    private readonly read: (name: string) => Promise<Fact>,
  ) {}

  find(name: string): Fact | Promise<Fact> {
    const known = this.known.get(name)
    const age = known ? performance.now() - known.read_at : Number.POSITIVE_INFINITY
    if (age >= this.kept_ms) return this.readAgain(name)
    // A failure here is not this caller's: once the fact is too old, the next caller gets the error.
    if (age >= this.kept_ms / 2) this.readAgain(name).catch(() => {})
    return known!.fact
  }

  /** However old it is. */
  peek(name: string): { fact: Fact; read_at: number } | undefined {
    return this.known.peek(name)
  }

  readAgain(name: string): Promise<Fact> {
    const under_way = this.pending.get(name)
    const since = performance.now()
    // A slow look-up may have read the state before a revocation.
    if (under_way && since - under_way.since < this.kept_ms) return under_way.reading
    const reading = this.read(name)
      .then((fact) => {
        this.known.set(name, { fact, read_at: since })
        return fact
      })
      .finally(() => {
        if (this.pending.get(name)?.reading === reading) this.pending.delete(name)
      })
    this.pending.set(name, { since, reading })
    return reading
  }
}
