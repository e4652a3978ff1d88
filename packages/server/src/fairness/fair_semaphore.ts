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
  places: number
  expires_at: number
  admit: () => void
  refuse: (error: Error) => void
}

/** Waits for a place at once, over all owners: what is beyond is refused at once, so that waiting costs a bounded memory. */
const WAITING_MAX = 10_000

/**
 * Places that owners share fairly, such as a pool's connections or bytes of memory between projects. An owner gets
 * another place only while it holds fewer than are free, so one owner alone has half of them, two have a third each,
 * and a few stay free for whoever comes next, however long the others hold theirs. Owners whose turn has to wait take
 * turns. Room to wait is shared by the same rule.
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

  /** Places that are held. */
  get taken(): number {
    return this.limits.places_max - this.free
  }

  heldBy(owner: string): number {
    return this.held.get(owner) ?? 0
  }

  get places_max(): number {
    return this.limits.places_max
  }

  /** Runs `work` in a place of the owner's. Where one is free, it begins at once. @throws the limits' refusal */
  run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    // Whoever waits may not take a place now, and so neither may those who come behind it.
    if (!this.mayTake(owner, 1)) return this.wait(owner, 1).then(() => this.holding(owner, work))
    this.take(owner, 1)
    return this.holding(owner, work)
  }

  /** Takes places at once, unless the owner would have to wait for them; then gives false. */
  tryTake(owner: string, places: number): boolean {
    if (this.queue.waitingOf(owner) > 0 || !this.mayTake(owner, places)) return false
    this.take(owner, places)
    return true
  }

  /** Resolves when the owner has got so many places more. @throws the limits' refusal */
  wait(owner: string, places: number): Promise<void> {
    const isTooMany = places > Math.ceil(this.limits.places_max / 2)
    if (isTooMany || this.queue.waitingOf(owner) >= WAITING_MAX - this.queue.size) {
      this.counts.refusals += 1
      return Promise.reject(this.limits.refusal())
    }
    this.counts.waits += 1
    return new Promise((admit, refuse) => {
      const expires_at = performance.now() + this.limits.wait_ms_max
      const waiter = { owner, places, expires_at, admit, refuse }
      this.queue.add(owner, waiter)
      this.waiters.add(waiter)
      this.expiry ??= setTimeout(() => this.expire(), this.limits.wait_ms_max)
    })
  }

  /** Takes places, though they may not be free: for what is held already, and must be known of. */
  take(owner: string, places: number): void {
    this.held.set(owner, this.heldBy(owner) + places)
    this.free -= places
  }

  giveBack(owner: string, places: number): void {
    const left = this.held.get(owner)! - places
    if (left > 0) this.held.set(owner, left)
    else this.held.delete(owner)
    this.free += places
    this.admitWaiters()
  }

  private async holding<T>(owner: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.giveBack(owner, 1)
    }
  }

  /** By the rule above, with the places in question taken: the last of them is the one that it looks at. */
  private mayTake(owner: string, places: number): boolean {
    return this.heldBy(owner) + places - 1 < this.free - places + 1
  }

  private admitWaiters(): void {
    const mayHaveTurn = (_owner: unknown, { owner, places }: Waiter) => this.mayTake(owner, places)
    for (let next = this.queue.next(mayHaveTurn); next; next = this.queue.next(mayHaveTurn)) {
      this.waiters.delete(next)
      this.take(next.owner, next.places)
      next.admit()
    }
  }

  private expire(): void {
    this.expiry = undefined
    const now = performance.now()
    for (const waiter of this.waiters) {
      if (waiter.expires_at > now) {
        this.expiry = setTimeout(() => this.expire(), waiter.expires_at - now)
        break
      }
      this.waiters.delete(waiter)
      this.queue.remove(waiter.owner, waiter)
      this.counts.refusals += 1
      waiter.refuse(this.limits.refusal())
    }
    // Those behind may want fewer places.
    this.admitWaiters()
  }
}
