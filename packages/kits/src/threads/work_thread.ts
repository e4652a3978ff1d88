import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { AnnalsError } from '../errors.js'
import { FairSemaphore } from '../fairness/fair_queue.js'

/** How long a job may wait for the thread. A body of 1 MiB takes it up to a second. */
const WAIT_MS_MAX = 5_000
/** Smaller buffers may be parts of one that others use. */
const SMALL_BYTES = 16_384
const YOUNG_MEGABYTES_MAX = 16
const MEGABYTE = 1024 * 1024
/** The most costly patterns that a project may have take half of it for 1 MB. */
const COSTLY_MS_MAX = 3_000
/** A thread that is just starting may take so many times as long. */
const START_FACTOR = 5
/**
 * Limit of the heap of the thread that takes bodies. Without one, it grows as large as the process's own, mostly with
 * garbage. The most expensive body found, 1 MB of `[{},{},…]` beside a message, takes 80 MB, the idle thread included.
 */
const HEAP_MEGABYTES_MIN = 32
const HEAP_MEGABYTES_PER_BODY_MEGABYTE = 96

/**
 * Work of the second thread, by name; each module adds its own. Arguments and results are copied between threads, so
 * they are texts and numbers.
 */
// biome-ignore lint/suspicious/noEmptyInterface: modules add their members to it
export interface ThreadWork {}

export type WorkName<Work = ThreadWork> = keyof Work & string
type Doing<Work, Name extends keyof Work> = Extract<Work[Name], (...values: never[]) => unknown>
export type WorkArguments<Name extends keyof Work, Work = ThreadWork> = Parameters<Doing<Work, Name>>
export type WorkResult<Name extends keyof Work, Work = ThreadWork> = Awaited<ReturnType<Doing<Work, Name>>>

/** Answers what a job asks this side for. */
export type Call = (...values: never[]) => Promise<unknown>

export interface WorkOrder {
  number: number
  name: string
  values: unknown[]
}

/** Of a job: its result, the stack of an unexpected error, or that it asks this side for something. */
export type WorkReport = { number: number } & (
  | { result: unknown }
  | { fault: string }
  | { call: number; values: unknown[] }
)

export type CallOutcome = { call: number } & ({ result: unknown } | { failed: true })

export interface ThreadOptions {
  /** The compiled file that it runs. */
  file: URL
  heap_megabytes: number
  jobs_max: number
  /** A job that takes longer is ended with the thread, and refused: there may be one at a time. */
  job_ms_max?: number
  /** Whose bodies it takes; those of others are short. */
  operations?: ReadonlySet<string>
  /** The `workerData` of its file. */
  data?: unknown
}

interface Waiting {
  resolve: (result: never) => void
  reject: (error: Error) => void
  call: Call | undefined
}

/** The thread for bodies and conversions beyond a few KB. */
export function bodyThread(
  body_bytes_max: number,
  here: ThreadWork,
  operations: ReadonlySet<string>,
  file: URL,
): WorkThread {
  const heap_megabytes =
    HEAP_MEGABYTES_MIN + HEAP_MEGABYTES_PER_BODY_MEGABYTE * Math.ceil(body_bytes_max / MEGABYTE)
  const options = { file, heap_megabytes, jobs_max: 1, operations }
  return new WorkThread(options, here, new WorkThread({ ...options, job_ms_max: COSTLY_MS_MAX }, here))
}

/**
 * A thread for work that would hold the event loop too long. Started by the first job. It runs a bounded number of jobs
 * at once, with projects taking turns; a job that waits too long is refused. Jobs wait on this side, where they are
 * counted.
 */
export class WorkThread<Work extends object = ThreadWork> {
  private thread: Worker | undefined
  private readonly waiting = new Map<number, Waiting>()
  private orders = 0
  private readonly places: FairSemaphore

  /**
   * @param here the same work on this thread, for small inputs
   * @param costly a thread of its own for jobs that a project can make costly: they delay no others
   */
  constructor(
    private readonly options: ThreadOptions,
    private readonly here?: Work,
    private readonly costly?: WorkThread<Work>,
  ) {
    const places = { places_max: options.jobs_max, wait_ms_max: WAIT_MS_MAX, refusal: tooMuchWork }
    this.places = new FairSemaphore(places)
  }

  for(isCostly: boolean | undefined): WorkThread<Work> {
    return (isCostly ? this.costly : undefined) ?? this
  }

  /** Runs a job for an owner, which is a project; bytes are gone after it. @throws AnnalsError overloaded */
  run<Name extends WorkName<Work>>(
    owner: string,
    name: Name,
    ...values: WorkArguments<Name, Work>
  ): Promise<WorkResult<Name, Work>> {
    return this.places.run(owner, () => this.order(name, values))
  }

  /** The same for a job that asks this side for something while it runs. */
  runWith<Name extends WorkName<Work>>(
    owner: string,
    call: Call,
    name: Name,
    ...values: WorkArguments<Name, Work>
  ): Promise<WorkResult<Name, Work>> {
    return this.places.run(owner, () => this.order(name, values, call))
  }

  /** Whether it takes the body of an operation. */
  takes(operation: string | undefined): boolean {
    return operation !== undefined && (this.options.operations?.has(operation) ?? false)
  }

  runHere<Name extends WorkName<Work>>(
    name: Name,
    ...values: WorkArguments<Name, Work>
  ): WorkResult<Name, Work> | Promise<WorkResult<Name, Work>> {
    return (this.here![name] as (...values: unknown[]) => WorkResult<Name, Work>)(...values)
  }

  /** Tells the thread something, if it runs, without waiting for a turn. */
  tell<Name extends WorkName<Work>>(name: Name, ...values: WorkArguments<Name, Work>): void {
    if (this.thread) this.order(name, values).catch(() => {})
  }

  async close(): Promise<void> {
    await this.costly?.close()
    await this.thread?.terminate()
  }

  private order<Result>(name: string, values: unknown[], call?: Call): Promise<Result> {
    const isNew = this.thread === undefined
    this.thread ??= this.start()
    const { thread } = this
    const number = ++this.orders
    const { job_ms_max } = this.options
    let timer: NodeJS.Timeout | undefined
    return new Promise<Result>((resolve, reject) => {
      if (job_ms_max !== undefined)
        timer = setTimeout(
          () => {
            this.fail(thread, tooCostly())
            void thread.terminate()
          },
          isNew ? START_FACTOR * job_ms_max : job_ms_max,
        )
      this.waiting.set(number, { resolve, reject, call })
      // Bytes are handed over instead of copied: a large body would hold the event loop.
      const bytes = values.filter((value) => value instanceof Uint8Array && value.length > SMALL_BYTES)
      thread.postMessage(
        { number, name, values } satisfies WorkOrder,
        (bytes as Uint8Array<ArrayBuffer>[]).map(({ buffer }) => buffer),
      )
    }).finally(() => clearTimeout(timer))
  }

  private start(): Worker {
    const { file, heap_megabytes, data } = this.options
    // Where the process was given this option for its own heap, which is fixed by now, V8 prefers it to the limits below.
    setFlagsFromString(`--max-old-space-size=${heap_megabytes}`)
    const thread = new Worker(file, {
      workerData: data,
      resourceLimits: {
        maxOldGenerationSizeMb: heap_megabytes,
        maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX,
      },
    })
    // It does not keep the process running.
    thread.unref()
    thread.on('message', (report: WorkReport) => this.take(thread, report))
    // For example out of memory. The next job starts another thread.
    thread.on('error', (error) => this.fail(thread, error))
    thread.on('exit', () => this.fail(thread, new Error('the work thread ended')))
    return thread
  }

  private take(thread: Worker, report: WorkReport): void {
    const waiting = this.waiting.get(report.number)
    // A thread that failed may still report what was given up with it.
    if (!waiting) return
    if ('call' in report) {
      const { call } = report
      const post = (outcome: CallOutcome) => thread.postMessage(outcome)
      waiting.call!(...(report.values as never[])).then(
        (result) => post({ call, result }),
        () => post({ call, failed: true }),
      )
      return
    }
    this.waiting.delete(report.number)
    if ('fault' in report) waiting.reject(new Error(`on the work thread: ${report.fault}`))
    else waiting.resolve(report.result as never)
  }

  private fail(thread: Worker, error: unknown): void {
    if (this.thread !== thread) return
    this.thread = undefined
    const isOutOfMemory = (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY'
    for (const { reject } of this.waiting.values())
      reject(
        isOutOfMemory
          ? tooMuchWork()
          : error instanceof AnnalsError
            ? error
            : new Error('the work thread failed', { cause: error }),
      )
    this.waiting.clear()
  }
}

function tooMuchWork(): AnnalsError {
  return new AnnalsError(
    'overloaded',
    'The service has too many large requests in progress. Nothing was done; retry shortly.',
  )
}

function tooCostly(): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    'The patterns in the rules of this project take too long for a text of this size. Send less at once, or simplify the patterns: PUT /api/v1/redaction.',
  )
}

/** Characters that are worked on on the event loop; more goes to the work thread. */
const INLINE_LENGTH_MAX = 32 * 1024
/** So often may the event loop do as much for the same caller, with a turn for the others between. */
const INLINE_ORDERS_MAX = 4
/** Characters per job of the work thread, except for a single longer item, so that others get their turns. */
const ORDER_LENGTH_MAX = 512 * 1024

type ItemWork = {
  [Name in WorkName]: ThreadWork[Name] extends (
    items: infer _Items extends unknown[],
    ...more: never[]
  ) => unknown[]
    ? Name
    : never
}[WorkName]
type Item<Name extends ItemWork> = WorkArguments<Name> extends [Array<infer One>, ...unknown[]] ? One : never
type Further<Name extends ItemWork> = WorkArguments<Name> extends [unknown, ...infer More] ? More : []
type Result<Name extends ItemWork> = WorkResult<Name> extends Array<infer One> ? One : never

/** Does work on so many characters on the event loop if that is little, and otherwise on the thread. */
export async function workAtOnce<Name extends WorkName>(
  thread: WorkThread,
  owner: string,
  name: Name,
  length: number,
  ...values: WorkArguments<Name>
): Promise<WorkResult<Name>> {
  if (length > INLINE_LENGTH_MAX) return thread.run(owner, name, ...values)
  return thread.runHere(name, ...values)
}

/** Does it on the event loop if it is little, and otherwise on the thread, in orders of bounded size. */
export async function workInOrders<Name extends ItemWork>(
  thread: WorkThread,
  owner: string,
  name: Name,
  items: Item<Name>[],
  lengthOf: (item: Item<Name>) => number,
  ...more: Further<Name>
): Promise<Result<Name>[]> {
  const results: Result<Name>[] = []
  const small = inOrders(items, lengthOf, INLINE_LENGTH_MAX)
  const isLittle =
    small.length <= INLINE_ORDERS_MAX && items.every((item) => lengthOf(item) <= INLINE_LENGTH_MAX)
  for (const [index, order] of (isLittle ? small : inOrders(items, lengthOf)).entries()) {
    const values = [order, ...more] as unknown as WorkArguments<Name>
    if (isLittle && index > 0) await turn()
    const done = isLittle ? thread.runHere(name, ...values) : thread.run(owner, name, ...values)
    results.push(...((await done) as Result<Name>[]))
  }
  return results
}

/** Divides items into orders, in their order. */
export function inOrders<Any>(
  items: readonly Any[],
  lengthOf: (item: Any) => number,
  length_max = ORDER_LENGTH_MAX,
): Any[][] {
  const orders: Any[][] = []
  let length = Number.POSITIVE_INFINITY
  for (const item of items) {
    if (length + lengthOf(item) > length_max) {
      orders.push([])
      length = 0
    }
    orders.at(-1)!.push(item)
    length += lengthOf(item)
  }
  return orders
}
