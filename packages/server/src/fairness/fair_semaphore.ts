import { FairQueue } from './fair_queue.js'

export interface FairSemaphoreLimits {
  /** Places that can be held at once, over all owners. */
  places_max: number
  wait_ms_max: number
  /** The error for a wait that took too long, or found no room. */
  refusal: () => Error
}

interface Waiter {
  owner: string
  places: number
  expires_at: number
  admit: () => void
  refuse: (error: Error) => void
}

/** Most waits at once, over all owners. Further ones are refused at once, so waiting takes bounded memory. */
const WAITING_MAX = 10_000

/**
 * Places that owners share fairly, such as connections of a pool, or bytes of memory, between projects. An owner may
 * take another place only while it holds fewer than are free. So a single owner gets half, two get a third each, and
 * a few always stay free for the next one, however long the others hold theirs. Owners that must wait take turns.
 * Room to wait is shared by the same rule.
 */
export class FairSemaphore {
  /** Number of waits, and of refusals, including those for lack of room to wait. */
  readonly counts = { waits: 0, refusals: 0 }
  private free: number
  private readonly held = new Map<string, number>()
  private readonly queue = new FairQueue<Waiter>()
  /** The same in order of arrival, which is also the order of expiry. */
  private readonly waiters = new Set<Waiter>()
  private expiry: NodeJS.Timeout | undefined

  readonly places_max: number

  constructor(private readonly limits: FairSemaphoreLimits) {
    this.places_max = limits.places_max
    this.free = limits.places_max
  }

  get waiting(): number {
    return this.queue.size
  }

  get taken(): number {
    return this.places_max - this.free
  }

  heldBy(owner: string): number {
    return this.held.get(owner) ?? 0
  }

  /** Runs `work` while holding a place of the owner's, at once if one is free. @throws the limits' refusal */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    // The owners that wait may not take a place now, so neither may those behind them.
    if (this.mayTake(owner, 1)) this.take(owner, 1)
    else await this.wait(owner, 1)
    try {
      return await work()
    } finally {
      this.giveBack(owner, 1)
    }
  }

  /** Takes places at once and returns true, or returns false if the owner would have to wait for them. */
  tryTake(owner: string, places: number): boolean {
    if ((this.queue.size > 0 && this.queue.waitingOf(owner) > 0) || !this.mayTake(owner, places)) return false
    this.take(owner, places)
    return true
  }

  /** Resolves when the owner holds so many more places. @throws the limits' refusal */
  wait(owner: string, places: number): Promise<void> {
    const isTooMany = places > Math.ceil(this.places_max / 2)
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

  /** Takes places even if none are free: for what is held already and must be counted. */
  take(owner: string, places: number): void {
    this.held.set(owner, (this.held.get(owner) ?? 0) + places)
    this.free -= places
  }

  giveBack(owner: string, places: number): void {
    const left = this.held.get(owner)! - places
    if (left > 0) this.held.set(owner, left)
    else this.held.delete(owner)
    this.free += places
    if (this.queue.size === 0) return
    // Its turn has only now ended: whoever came meanwhile would otherwise wait for another one of it.
    this.queue.moveToEnd(owner)
    this.admitWaiters()
  }

  /** Applies the rule above as if all but the last of the places in question were taken. */
  private mayTake(owner: string, places: number): boolean {
    return (this.held.get(owner) ?? 0) + places - 1 < this.free - places + 1
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
    // Those behind may need fewer places.
    this.admitWaiters()
  }
}
