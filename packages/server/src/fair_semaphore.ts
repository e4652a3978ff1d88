import { FairQueue } from './fair_queue.js'

export interface FairSemaphoreLimits {
  /** Places to be held at once, over all owners. */
  places_max: number
  /** How long a wait for a place may take, in ms. */
  wait_ms_max: number
  /** The error of whoever waited for too long, or had no room to wait. */
  refusal: () => Error
}

interface Waiter {
  owner: string
  expires_at: number
  admit: () => void
  refuse: (error: Error) => void
}

/** Waits for a place at once, over all owners: what is beyond is refused at once, so that waiting costs a bounded memory. */
const WAITING_MAX = 10_000

/**
 * Places that owners share fairly, such as a pool's connections between projects. An owner gets another place only
 * while it holds fewer than are free, so one owner alone has half of them, two have a third each, and a few stay free
 * for whoever comes next, however long the others hold theirs. Owners whose turn has to wait take turns. Room to wait
 * is shared by the same rule.
 */
export class FairSemaphore {
  /** Waits that there were, and of these, and of those without room to wait, how many were refused. */
  readonly counts = { waits: 0, refusals: 0 }
  private free: number
  private readonly held = new Map<string, number>()
  private readonly queue = new FairQueue<Waiter>()
  /** The same in order of arrival, and so of expiry. */
  private readonly waiters = new Set<Waiter>()
  private expiry: NodeJS.Timeout | undefined

  constructor(private readonly limits: FairSemaphoreLimits) {
    this.free = limits.places_max
  }

  get waiting(): number {
    return this.queue.size
  }

  /** Runs `work` in a place of the owner's. Where one is free, it begins at once. @throws the limits' refusal */
  run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    // Whoever waits may not take a place now, and so neither may those who come behind it.
    if (!this.mayTake(owner)) return this.wait(owner).then(() => this.holding(owner, work))
    this.take(owner)
    return this.holding(owner, work)
  }

  private async holding<T>(owner: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.release(owner)
    }
  }

  private readonly mayTake = (owner: unknown): boolean => (this.held.get(owner as string) ?? 0) < this.free

  private take(owner: string): void {
    this.held.set(owner, (this.held.get(owner) ?? 0) + 1)
    this.free -= 1
  }

  private release(owner: string): void {
    const left = this.held.get(owner)! - 1
    if (left > 0) this.held.set(owner, left)
    else this.held.delete(owner)
    this.free += 1
    for (let next = this.queue.next(this.mayTake); next; next = this.queue.next(this.mayTake)) {
      this.waiters.delete(next)
      this.take(next.owner)
      next.admit()
    }
  }

  private wait(owner: string): Promise<void> {
    if (this.queue.waitingOf(owner) >= WAITING_MAX - this.queue.size) {
      this.counts.refusals += 1
      return Promise.reject(this.limits.refusal())
    }
    this.counts.waits += 1
    return new Promise((admit, refuse) => {
      const waiter = { owner, expires_at: performance.now() + this.limits.wait_ms_max, admit, refuse }
      this.queue.add(owner, waiter)
      this.waiters.add(waiter)
      this.expiry ??= setTimeout(() => this.expire(), this.limits.wait_ms_max)
    })
  }

  private expire(): void {
    this.expiry = undefined
    const now = performance.now()
    for (const waiter of this.waiters) {
      if (waiter.expires_at > now) {
        this.expiry = setTimeout(() => this.expire(), waiter.expires_at - now)
        return
      }
      this.waiters.delete(waiter)
      this.queue.remove(waiter.owner, waiter)
      this.counts.refusals += 1
      waiter.refuse(this.limits.refusal())
    }
  }
}
