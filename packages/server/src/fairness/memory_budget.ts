import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from './fair_semaphore.js'

/** The part of V8's heap that requests may fill: base load and garbage need the rest. */
const HEAP_SHARE = 1 / 2
/** The part of the machine's memory, or of the cgroup's: PostgreSQL may be beside, and the system's buffers are. */
const MACHINE_SHARE = 1 / 4
/** How long a request waits for a share before it is refused. */
const WAIT_MS_MAX = 1_000
/** Whose all is that comes from callers without a key, or from nobody in particular. */
export const NO_PROJECT = 'no project'

/**
 * Bytes of memory that requests share: bodies that arrive, what is read from the database, answers until they are
 * taken. Projects share them by the rule of FairSemaphore.
 */
export type MemoryBudget = FairSemaphore

export function memoryBudget(bytes_max: number): MemoryBudget {
  return new FairSemaphore({ places_max: bytes_max, wait_ms_max: WAIT_MS_MAX, refusal: outOfMemory })
}

/** What requests may take in one of `processes` that serve on this machine. */
export function defaultMemoryBytes(processes = 1): number {
  const total = totalmem()
  const constrained = process.constrainedMemory()
  const machine = constrained > 0 ? Math.min(total, constrained) : total
  const heap = getHeapStatistics().heap_size_limit
  return Math.floor(Math.min(heap * HEAP_SHARE, (machine * MACHINE_SHARE) / processes))
}

/** A request's share of the budget, which grows and shrinks with what it holds, and ends with its answer. */
export class MemoryShare {
  private held = 0
  private isClosed = false

  constructor(
    private readonly budget: MemoryBudget,
    private readonly owner: string,
  ) {}

  /** Holds at least so many bytes, if they can be had at once. */
  tryHold(bytes: number): boolean {
    const more = this.missing(bytes)
    if (more <= 0) return true
    // Whoever left needs no more, and what goes on for it must not count for ever. Nothing is thrown: this is called
    // where data arrives, with nobody around to catch it.
    if (this.isClosed) return false
    if (!this.budget.tryTake(this.owner, more)) return false
    this.held += more
    return true
  }

  /** Holds at least so many bytes, waiting a moment for them. @throws AnnalsError overloaded */
  async hold(bytes: number): Promise<void> {
    if (this.tryHold(bytes)) return
    if (this.isClosed) throw new AnnalsError('overloaded', 'The caller has left.')
    const more = this.missing(bytes)
    await this.budget.wait(this.owner, more)
    if (this.isClosed) this.budget.giveBack(this.owner, more)
    else this.held += more
  }

  /** Holds so many bytes and no more, whether they were to be had or not. */
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

  /** What is more than a quarter of all could hardly ever be had, so that it is not asked for: a small service is slow. */
  private missing(bytes: number): number {
    return Math.min(bytes, Math.floor(this.budget.places_max / 4)) - this.held
  }
}

export function outOfMemory(): AnnalsError {
  return new AnnalsError(
    'overloaded',
    'The service has no memory left for this request. Nothing was done; retry shortly, or ask for less at a time.',
  )
}
