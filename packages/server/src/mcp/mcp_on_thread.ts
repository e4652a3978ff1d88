import type { Worker } from 'node:worker_threads'
import { FairSemaphore } from '../fairness/fair_semaphore.js'
import { startThread, tooMuchWork } from '../threads/work_thread.js'

const HEAP_MEGABYTES = 128
/** Requests at once. Most of their time they wait for the service. */
const REQUESTS_MAX = 8
const WAIT_MS_MAX = 5_000

/** A request, whose key was checked already. `body` is JSON that was parsed. */
export interface McpRequest {
  headers: Record<string, string>
  body: unknown
  token: string
  may_write: boolean
}
export type McpOrder = McpRequest & { number: number }

export interface McpAnswer {
  status: number
  headers: Record<string, string>
  text: string
}

/** What the thread says of a request: its answer, that the API is to be called for it, or an unexpected error's stack. */
export type McpReport = { number: number } & (
  | McpAnswer
  | { call: number; url: string; method: string; headers: [string, string][]; body: string | undefined }
  | { fault: string }
)
export type CallOutcome = { call: number } & (McpAnswer | { failed: true })

interface Waiting {
  fetch: typeof fetch
  resolve: (answer: McpAnswer) => void
  reject: (error: Error) => void
}

/**
 * A thread that answers requests of the Model Context Protocol. Its library takes a tenth of a second to load, and
 * reading what tools ask for as long again, for which the event loop would stand. Started by the first request.
 */
export class McpThread {
  private thread: Worker | undefined
  private readonly waiting = new Map<number, Waiting>()
  private requests = 0
  private readonly places = new FairSemaphore({
    places_max: REQUESTS_MAX,
    wait_ms_max: WAIT_MS_MAX,
    refusal: tooMuchWork,
  })

  /** @param origins whose pages may call, as URLs */
  constructor(private readonly origins: string[]) {}

  /** Answers a project's request; `fetch` makes its calls of the API. @throws AnnalsError overloaded */
  answer(project_id: string, request: McpRequest, fetch: Waiting['fetch']): Promise<McpAnswer> {
    const ask = () =>
      new Promise<McpAnswer>((resolve, reject) => {
        this.thread ??= this.start()
        const number = ++this.requests
        this.waiting.set(number, { fetch, resolve, reject })
        this.thread.postMessage({ number, ...request } satisfies McpOrder)
      })
    return this.places.run(project_id, ask)
  }

  async close(): Promise<void> {
    await this.thread?.terminate()
  }

  private start(): Worker {
    const thread = startThread('./mcp_thread.js', HEAP_MEGABYTES, this.origins)
    thread.on('message', (report: McpReport) => this.take(thread, report))
    // For example out of memory. The next request starts another thread.
    thread.on('error', () => this.fail(thread))
    thread.on('exit', () => this.fail(thread))
    return thread
  }

  private take(thread: Worker, report: McpReport): void {
    const waiting = this.waiting.get(report.number)
    if (!waiting) return
    if ('call' in report) {
      const { call, url, ...init } = report
      const post = (outcome: CallOutcome) => thread.postMessage(outcome)
      const tell = async (response: Response) => {
        const headers = Object.fromEntries(response.headers)
        post({ call, status: response.status, headers, text: await response.text() })
      }
      waiting
        .fetch(url, { ...init, body: init.body ?? null })
        .then(tell)
        .catch(() => post({ call, failed: true }))
      return
    }
    this.waiting.delete(report.number)
    if ('fault' in report) waiting.reject(new Error(`on the thread of MCP: ${report.fault}`))
    else waiting.resolve(report)
  }

  private fail(thread: Worker): void {
    if (this.thread !== thread) return
    this.thread = undefined
    for (const { reject } of this.waiting.values()) reject(tooMuchWork())
    this.waiting.clear()
  }
}
