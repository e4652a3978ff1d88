import { setMaxListeners } from 'node:events'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../postgres/database.js'
import { describeError } from '../postgres/database_errors.js'

/** Shared by background work. `database` has its own connections, so it takes none from requests. */
export interface Background {
  database: Database
  /** Ends everything; the next node does unfinished work again. */
  signal: AbortSignal
  logger: Logger
}

export interface LoopOptions<Task extends object> extends Pick<Background, 'signal' | 'logger'> {
  failure: string
  poll: () => Promise<unknown>
  /** Between two polls, on average: this spreads nodes over time, even those that were started together. */
  poll_ms: number
  /**
   * A pause is at least so many times as long as the two polls before it took, the shorter one, so that a poll that grows with
   * the data stays a small load. One that was slow once, or failed, had met with a database that was busy or away.
   */
  rest?: number
  /** The wait for the first poll; by default as for any other. */
  first_ms?: number
  run?: (task: Task) => Promise<unknown>
  /** Planned tasks that run at once. */
  running_max?: number
}

/**
 * Background work at one node, until the signal aborts. What fails is logged, and done again when it is found again.
 *
 *   the poll, or somebody at this node ──plan──▶ waiting until its time ──▶ running ──▶ gone, or waiting again if it was
 *   planned meanwhile
 *
 * A key runs once at a time.
 */
export class Loop<Task extends object = never> {
  /** `at`: performance.now() before which the task does not run. */
  private readonly waiting = new Map<string, { task: Task; at: number }>()
  private readonly running = new Map<string, { task: Task; ended: Promise<unknown> }>()
  private readonly polling: Promise<void>
  /** When the next task that is not running is due. */
  private next = Number.POSITIVE_INFINITY
  private timer: NodeJS.Timeout | undefined
  private stopped = false

  constructor(private readonly options: LoopOptions<Task>) {
    // Every loop waits for the same signal: Node would warn of a leak from 11 on.
    setMaxListeners(0, options.signal)
    this.polling = this.pollOn()
  }

  /** Runs a task in `wait_ms`, or earlier if that was planned before. */
  plan(key: string, task: Task, wait_ms: number): void {
    if (this.stopped || this.options.signal.aborted) return
    const at = performance.now() + wait_ms
    const planned = this.waiting.get(key)
    if (planned) planned.at = Math.min(planned.at, at)
    else this.waiting.set(key, { task, at })
    if (at < this.next) this.wakeAt(at)
  }

  get tasks(): ReadonlyMap<string, Task> {
    return new Map([...this.waiting, ...this.running].map(([key, { task }]) => [key, task]))
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    this.waiting.clear()
    await Promise.all([...this.running.values()].map(({ ended }) => ended))
  }

  /** Resolves when nothing is under way any more, which `signal` brings about. */
  async ended(): Promise<void> {
    await this.polling
    await this.stop()
  }

  /** Logs a failure, unless it is the end. */
  warn(error: unknown, of: object = {}): void {
    const { signal, logger, failure } = this.options
    if (!signal.aborted) logger.warn({ err: describeError(error), ...of }, failure)
  }

  private async pollOn(): Promise<void> {
    const { signal, poll, poll_ms, first_ms, rest = 0 } = this.options
    const pause_ms = () => poll_ms * (0.5 + Math.random())
    let earlier = 0
    for (let wait_ms = first_ms ?? pause_ms(); !signal.aborted; ) {
      let took = 0
      try {
        await sleep(wait_ms, undefined, { signal, ref: false })
        const began = performance.now()
        await poll()
        took = performance.now() - began
      } catch (error) {
        this.warn(error)
      }
      wait_ms = Math.max(pause_ms(), rest * Math.min(took, earlier))
      earlier = took
    }
  }

  private wakeAt(at: number): void {
    clearTimeout(this.timer)
    this.next = at
    if (at === Number.POSITIVE_INFINITY) return
    this.timer = setTimeout(() => this.startDue(), Math.max(at - performance.now(), 0))
    this.timer.unref()
  }

  private startDue(): void {
    const { signal, running_max = Number.POSITIVE_INFINITY } = this.options
    if (this.stopped || signal.aborted) return
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const [key, { task, at }] of this.waiting) {
      // The end of one of them comes back here.
      if (this.running.size >= running_max) break
      if (this.running.has(key)) continue
      if (at > now) next = Math.min(next, at)
      else {
        this.waiting.delete(key)
        this.running.set(key, { task, ended: this.run(key, task) })
      }
    }
    this.wakeAt(next)
  }

  private async run(key: string, task: Task): Promise<void> {
    try {
      await this.options.run!(task)
    } catch (error) {
      this.warn(error, task)
    }
    this.running.delete(key)
    this.startDue()
  }
}

/** Works on each: one that fails keeps no other from its turn. @throws the first failure, at the end */
export async function each<T>(
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = []
  for (const item of items) {
    signal.throwIfAborted()
    await work(item).catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

const AGAIN_MS = 500

/**
 * Does work again, a moment after each failure, until it is done, the signal has gone off, or `ms_max` have passed.
 * For what others wait for and a database that is away or busy for a moment must not prevent. @throws the last failure
 */
export async function insist(
  work: () => Promise<unknown>,
  ms_max: number,
  signal: AbortSignal,
): Promise<void> {
  for (const until = performance.now() + ms_max; ; ) {
    try {
      await work()
      return
    } catch (error) {
      if (signal.aborted || performance.now() > until) throw error
      await sleep(AGAIN_MS, undefined, { signal, ref: false })
    }
  }
}

/** Share of its time from which the event loop counts as busy, and how many pieces of work long a pause then is. */
const BUSY = { utilization: 0.85, pieces: 4 }

/**
 * How long to pause after a piece of work that took so many ms: as long as it took, and four times as long if the
 * event loop has been busy since the pause before. Requests go before work in the background.
 */
export function pausesForRequests(): (worked_ms: number) => number {
  let before = performance.eventLoopUtilization()
  return (worked_ms) => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization < BUSY.utilization ? worked_ms : worked_ms * BUSY.pieces
  }
}
