import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from './fair_queue.js'

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
    'The service has no memory left for this request. Nothing was done; retry shortly, or ask for less at a time.',
  )
}
