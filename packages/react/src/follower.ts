/** How often a page looks whether it slept. */
const BEAT_MS = 10_000
/** Browsers let a hidden page's timers run once a minute. */
const HIDDEN_BEAT_MS_MAX = 90_000
const PAUSE_MS_MIN = 500
const PAUSE_MS_MAX = 10_000

/**
 * Calls `woken` when connections may be dead without anybody having said so: the machine or the page slept, or the
 * network is back. Returns a function that stops it.
 */
function onWake(woken: () => void): () => void {
  if (typeof window === 'undefined') return () => {}
  let beat_at = Date.now()
  const wakeIfSilentFor = (ms: number) => {
    const silent_ms = Date.now() - beat_at
    beat_at = Date.now()
    if (silent_ms > ms) woken()
  }
  const timer = setInterval(() => wakeIfSilentFor(HIDDEN_BEAT_MS_MAX), BEAT_MS)
  const gone = new AbortController()
  const { signal } = gone
  window.addEventListener('online', woken, { signal })
  window.addEventListener('pageshow', ({ persisted }) => persisted && woken(), { signal })
  document.addEventListener('resume', woken, { signal })
  document.addEventListener('visibilitychange', () => document.hidden || wakeIfSilentFor(3 * BEAT_MS), {
    signal,
  })
  return () => {
    clearInterval(timer)
    gone.abort()
  }
}

/** Resolves after `ms`, or as soon as the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms) : undefined
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}

/**
 * Work that goes on for as long as somebody uses it.
 *
 *   idle ──use──► working ──fails──► pausing ──► working … ──last user leaves──► idle
 *
 * When the page wakes, the work is aborted and begins again at once.
 */
export class Follower {
  #users = 0
  #run = 0
  #current = new AbortController()
  readonly #work: (signal: AbortSignal) => Promise<void>
  readonly #failed: (error: unknown) => boolean

  /** `failed` is told of an error, and returns whether trying again may help before the page wakes. */
  constructor(work: (signal: AbortSignal) => Promise<void>, failed: (error: unknown) => boolean) {
    this.#work = work
    this.#failed = failed
  }

  get isUsed(): boolean {
    return this.#users > 0
  }

  /** Returns a function that ends this use. */
  use(): () => void {
    this.#users += 1
    if (this.#users === 1) void this.#follow()
    let left = false
    return () => {
      if (left) return
      left = true
      this.#users -= 1
      if (this.#users === 0) this.#current.abort()
    }
  }

  restart(): void {
    this.#current.abort()
  }

  async #follow(): Promise<void> {
    // A run that was left and begun again in one breath must not become two.
    this.#run += 1
    const run = this.#run
    const forget = onWake(() => this.restart())
    let failures = 0
    while (this.isUsed && run === this.#run) {
      this.#current = new AbortController()
      const { signal } = this.#current
      try {
        await this.#work(signal)
        failures = 0
      } catch (error) {
        if (signal.aborted) continue
        failures += 1
        const pause_ms = Math.min(PAUSE_MS_MIN * 2 ** (failures - 1), PAUSE_MS_MAX)
        await pause(this.#failed(error) ? pause_ms : Number.POSITIVE_INFINITY, signal)
      }
    }
    forget()
  }
}
