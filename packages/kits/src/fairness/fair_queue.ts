import { totalmem } from 'node:os'
import { setImmediate as turn } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { AnnalsError } from '../errors.js'

/** A queue by owner: owners take turns, and each owner's items keep their order. */
export class FairQueue<T> {
  private readonly waiting = new Map<unknown, T[]>()
  size = 0

  add(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    if (waiting) waiting.push(item)
    else this.waiting.set(owner, [item])
    this.size += 1
  }

  /** Takes the next item of the first owner that may have a turn with it; undefined if there is none. */
  next(mayHaveTurn?: (owner: unknown, item: T) => boolean): T | undefined {
    for (const [owner, waiting] of this.waiting) {
      if (mayHaveTurn && !mayHaveTurn(owner, waiting[0]!)) continue
      const item = waiting.shift()
      this.size -= 1
      // A Map keeps insertion order: an owner that had its turn goes to the end. Where it is alone, that would only cost.
      if (waiting.length === 0) this.waiting.delete(owner)
      else if (this.waiting.size > 1) this.moveToEnd(owner)
      return item
    }
    return undefined
  }

  /** Lets all others that wait go before an owner. */
  moveToEnd(owner: unknown): void {
    const waiting = this.waiting.get(owner)
    if (!waiting) return
    this.waiting.delete(owner)
    this.waiting.set(owner, waiting)
  }

  remove(owner: unknown, item: T): void {
    const waiting = this.waiting.get(owner)
    const place = waiting?.indexOf(item) ?? -1
    if (place < 0) return
    waiting!.splice(place, 1)
    this.size -= 1
    if (waiting!.length === 0) this.waiting.delete(owner)
  }

  waitingOf(owner: unknown): number {
    return this.waiting.get(owner)?.length ?? 0
  }

  /** Whether an owner has far less waiting than the others. */
  isQuiet(owner: unknown): boolean {
    return this.waitingOf(owner) < this.size / Math.max(this.waiting.size, 1) / 2
  }
}

/**
 * How much of the queue one turn of the event loop handles. A long turn, caused by work that cannot wait, is made up
 * for: each further ms that it took allows that many more, or next to nothing else would be done.
 */
export class Quota {
  private turned_at = Number.POSITIVE_INFINITY

  constructor(private readonly a_turn: number) {}

  /** Begins a turn at a time in ms; returns how many items it may handle. */
  turn(now: number): number {
    const took_ms = now - this.turned_at
    this.turned_at = now
    return this.a_turn * Math.max(1, Math.floor(took_ms))
  }

  /** No turn follows for now, so the time until the next one does not count. */
  rest(): void {
    this.turned_at = Number.POSITIVE_INFINITY
  }
}

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

/** Waits that end without a place in one turn of the event loop: each is answered and logged. */
const REFUSED_A_TURN = 16
/** Most waits at once, over all owners. Further ones are refused at once, so waiting takes bounded memory. */
const WAITING_MAX = 10_000

/**
 * Places that owners share fairly, such as connections of a pool, or bytes of memory, between projects. An owner may
 * take another place only while it holds fewer than are free. So a single owner gets half, two get a third each, and
 * a few always stay free for the next one, however long the others hold theirs. Owners that must wait take turns.
 * Room to wait is shared by the same rule.
 */
export class FairSemaphore {
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
    // The owners that wait may not take a place now, so neither may those after them.
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

  /** Takes places even if none are free: for those that are held already and must be counted. */
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
    // Its turn has only now ended: a caller that came meanwhile would otherwise wait for another one of it.
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
    let left = REFUSED_A_TURN
    for (const waiter of this.waiters) {
      if (waiter.expires_at > now || left === 0) {
        this.expiry = setTimeout(() => this.expire(), Math.max(1, waiter.expires_at - now))
        break
      }
      left -= 1
      this.waiters.delete(waiter)
      this.queue.remove(waiter.owner, waiter)
      this.counts.refusals += 1
      waiter.refuse(this.limits.refusal())
    }
    // Those after may need fewer places.
    this.admitWaiters()
  }
}

/** Items that a turn of the event loop acts on. */
const ITEMS_A_TURN = 64

/** Acts on each of many items, such as thousands of open tails, with the turns of all other work between. */
export async function inTurns<Item>(items: Iterable<Item>, act: (item: Item) => void): Promise<void> {
  let left = ITEMS_A_TURN
  for (const item of items) {
    if (left === 0) {
      await turn()
      left = ITEMS_A_TURN
    }
    left -= 1
    act(item)
  }
}

/** The part of V8's heap that requests may fill: the base load and garbage need the rest. */
const HEAP_SHARE = 1 / 2
/** The part of the machine's or cgroup's memory: PostgreSQL may run beside, and the system's buffers do. */
const MACHINE_SHARE = 1 / 4
/** Longest wait of a request for memory before it is refused. */
const WAIT_MS_MAX = 1_000
/** The owner of everything that belongs to callers without a key, or to nobody in particular. */
export const NO_PROJECT = 'no project'

/**
 * Bytes of memory that requests share: incoming bodies, data read from the database, and answers until clients have
 * read them. Projects share them by the rule of FairSemaphore.
 */
export type MemoryBudget = FairSemaphore

export function memoryBudget(bytes_max: number): MemoryBudget {
  return new FairSemaphore({ places_max: bytes_max, wait_ms_max: WAIT_MS_MAX, refusal: outOfMemory })
}

/** The budget of one process, if so many serve on this machine. */
export function defaultMemoryBytes(processes = 1): number {
  const total = totalmem()
  const constrained = process.constrainedMemory()
  const machine = constrained > 0 ? Math.min(total, constrained) : total
  const heap = getHeapStatistics().heap_size_limit
  return Math.floor(Math.min(heap * HEAP_SHARE, (machine * MACHINE_SHARE) / processes))
}

/** A request's share of the budget. It grows and shrinks with what the request holds, and ends with its answer. */
export class MemoryShare {
  private held = 0
  private isClosed = false

  constructor(
    private readonly budget: MemoryBudget,
    private readonly owner: string,
  ) {}

  /** Holds at least so many bytes, if they are free now. */
  tryHold(bytes: number): boolean {
    const more = this.missing(bytes)
    if (more <= 0) return true
    // A request that has ended needs no more, and nothing that continues for it may count for ever. This must not
    // throw: it is called where data arrives, where nobody would catch it.
    if (this.isClosed) return false
    if (!this.budget.tryTake(this.owner, more)) return false
    this.held += more
    return true
  }

  /** Holds at least so many bytes, after a short wait if necessary. @throws AnnalsError overloaded */
  async hold(bytes: number): Promise<void> {
    if (this.tryHold(bytes)) return
    if (this.isClosed) throw new AnnalsError('overloaded', 'The caller has disconnected.')
    const more = this.missing(bytes)
    await this.budget.wait(this.owner, more)
    if (this.isClosed) this.budget.giveBack(this.owner, more)
    else this.held += more
  }

  /** Holds exactly so many bytes, whether they are free or not. */
  keep(bytes: number): void {
    const more = (this.isClosed ? 0 : bytes) - this.held
    this.held += more
    if (more > 0) this.budget.take(this.owner, more)
    else if (more < 0) this.budget.giveBack(this.owner, -more)
  }

  close(): void {
    this.keep(0)
    this.isClosed = true
  }

  /**
   * Never asks for more than a quarter of the budget, which could hardly ever be free: a small service is slow
   * instead.
   */
  private missing(bytes: number): number {
    return Math.min(bytes, Math.floor(this.budget.places_max / 4)) - this.held
  }
}

export function outOfMemory(): AnnalsError {
  return new AnnalsError(
    'overloaded',
    'The service has no memory left for this request. Nothing was done; retry shortly, or request less at a time.',
  )
}
