import { LRUCache } from 'lru-cache'

export const WINDOW_MS = 1_000
/** As many tokens as the directory caches; the least recently used is dropped first. */
const NAMES_COUNTED_MAX = 10_000

/** Counts each name, such as a token or an address, in windows of one second. */
export class Windows {
  private readonly windows = new LRUCache<string, { since_ms: number; current: number }>({
    max: NAMES_COUNTED_MAX,
  })

  /** Counts a name; returns its count in the current window, and when that ends, in ms. */
  count(name: string): { current: number; ttl: number } {
    const now_ms = performance.now()
    let window = this.windows.get(name)
    if (!window || now_ms - window.since_ms >= WINDOW_MS) {
      window = { since_ms: now_ms, current: 0 }
      this.windows.set(name, window)
    }
    window.current += 1
    return { current: window.current, ttl: Math.ceil(WINDOW_MS - (now_ms - window.since_ms)) }
  }

  /** The count of a name in the current window. */
  counted(name: string): number {
    const window = this.windows.peek(name)
    return window && performance.now() - window.since_ms < WINDOW_MS ? window.current : 0
  }
}
