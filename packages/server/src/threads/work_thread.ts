import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from '../fairness/fair_semaphore.js'
import type { WorkArguments, WorkName, WorkResult } from '../service/thread_work.js'

/** How long a job may wait for the thread. A body of 1 MiB takes it up to a second. */
const WAIT_MS_MAX = 5_000
const MEGABYTE = 1024 * 1024
/** Smaller buffers may be parts of one that others use. */
const SMALL_BYTES = 16_384
/**
 * Limit of the thread's heap. Without one, it grows as large as the process's own, mostly with garbage. The most
 * expensive body found, 1 MB of `[{},{},…]` beside a message, takes 80 MB, the idle thread included.
 */
const HEAP_MEGABYTES_MIN = 32
const HEAP_MEGABYTES_PER_BODY_MEGABYTE = 96
const YOUNG_MEGABYTES_MAX = 16

export interface WorkOrder {
  number: number
  name: WorkName
  values: unknown[]
}

/** `fault`: the stack of an unexpected error. */
export type WorkReport = { number: number; result: unknown } | { number: number; fault: string }

interface Waiting {
  resolve: (result: never) => void
  reject: (error: Error) => void
}

/**
 * A thread for work that would hold the event loop too long: bodies and conversions beyond a few KB. Started by the
 * first job. It runs one job at a time, with projects taking turns; a job that waits too long is refused. Jobs wait
 * on this side, where they are counted.
 */
export class WorkThread {
  private thread: Worker | undefined
  private readonly waiting = new Map<number, Waiting>()
  private orders = 0
  private readonly places = new FairSemaphore({
    places_max: 1,
    wait_ms_max: WAIT_MS_MAX,
    refusal: tooMuchWork,
  })

  constructor(private readonly body_bytes_max: number) {}

  /** Runs a job for an owner, which is a project; bytes are gone after it. @throws AnnalsError overloaded */
  run<Name extends WorkName>(
    owner: string,
    name: Name,
    ...values: WorkArguments<Name>
  ): Promise<WorkResult<Name>> {
    return this.places.run(owner, () => this.order<WorkResult<Name>>(name, values))
  }

  endConversation(conversation: number): void {
    if (this.thread) this.order('endConversation', [conversation]).catch(() => {})
  }

  endList(list: number): void {
    if (this.thread) this.order('endList', [list]).catch(() => {})
  }

  async close(): Promise<void> {
    await this.thread?.terminate()
  }

  private order<Result>(name: WorkName, values: unknown[]): Promise<Result> {
    this.thread ??= this.start()
    const { thread } = this
    const number = ++this.orders
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject })
      // Bytes are handed over instead of copied: a large body would hold the event loop.
      const bytes = values.filter((value) => value instanceof Uint8Array && value.length > SMALL_BYTES)
      thread.postMessage(
        { number, name, values } satisfies WorkOrder,
        (bytes as Uint8Array<ArrayBuffer>[]).map(({ buffer }) => buffer),
      )
    })
  }

  private start(): Worker {
    const body_megabytes = Math.ceil(this.body_bytes_max / MEGABYTE)
    const heap_megabytes = HEAP_MEGABYTES_MIN + HEAP_MEGABYTES_PER_BODY_MEGABYTE * body_megabytes
    const thread = startThread('./thread.js', heap_megabytes)
    thread.on('message', (report: WorkReport) => {
      const waiting = this.waiting.get(report.number)
      // A thread that failed may still report what was given up with it.
      if (!waiting) return
      const { resolve, reject } = waiting
      this.waiting.delete(report.number)
      if ('fault' in report) reject(new Error(`on the work thread: ${report.fault}`))
      else resolve(report.result as never)
    })
    // For example out of memory. The next job starts another thread.
    thread.on('error', (error) => this.fail(thread, error))
    thread.on('exit', () => this.fail(thread, new Error('the work thread ended')))
    return thread
  }

  private fail(thread: Worker, error: unknown): void {
    if (this.thread !== thread) return
    this.thread = undefined
    const isOutOfMemory = (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY'
    for (const { reject } of this.waiting.values())
      reject(isOutOfMemory ? tooMuchWork() : new Error('the work thread failed', { cause: error }))
    this.waiting.clear()
  }
}

/** Starts a thread with a bound to its heap, which does not keep the process running. */
export function startThread(file: string, heap_megabytes: number, workerData?: unknown): Worker {
  // Where the process was given this option for its own heap, which is fixed by now, V8 prefers it to the limits below.
  setFlagsFromString(`--max-old-space-size=${heap_megabytes}`)
  const thread = new Worker(new URL(file, import.meta.url), {
    workerData,
    resourceLimits: {
      maxOldGenerationSizeMb: heap_megabytes,
      maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX,
    },
  })
  thread.unref()
  return thread
}

export function tooMuchWork(): AnnalsError {
  return new AnnalsError(
    'overloaded',
    'The service has too many large requests in progress. Nothing was done; retry shortly.',
  )
}
