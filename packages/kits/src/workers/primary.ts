import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import { type FromPrimary, type FromWorker, ours } from './worker.js'

const RESTART_MS_MIN = 100
const RESTART_MS_MAX = 10_000
/** A worker that lived this long did not fail at its start. */
const HEALTHY_MS = 60_000

export interface WorkersOptions {
  count: number
  args: string[]
  env: Record<string, string>
  /** How long a worker may take to stop before it is killed, in ms. */
  stop_ms_max: number
  say: (sentence: string) => void
}

/** The first worker ended before it served, and has reported why. */
export class FirstWorkerFailed extends Error {
  constructor(readonly exit_code: number) {
    super('the first worker did not start')
  }
}

/**
 * Processes that share a port, and the primary that starts them. Each of `count` slots cycles through:
 *
 *   starting ── it reports ready ──▶ serving ── it ends ──▶ waiting (longer each time) ──▶ starting
 *
 * until `stop`. The first slot starts alone: what keeps a worker from starting is reported once and ends everything.
 */
export class Workers {
  private readonly aggregator = new AggregatorRegistry()
  private readonly ended = new AbortController()
  private places: Promise<void>[] = []

  constructor(private readonly options: WorkersOptions) {
    cluster.setupPrimary({ args: options.args })
    cluster.on('message', (worker, message) => this.hear(worker, message))
  }

  /** Starts all and resolves with their URL when all are serving. @throws FirstWorkerFailed */
  async start(): Promise<string> {
    const first = this.fork()
    const url = await Promise.race([readyUrl(first), exitOf(first).then(() => undefined)])
    if (url === undefined) throw new FirstWorkerFailed(first.process.exitCode ?? 1)
    const others = Array.from({ length: this.options.count - 1 }, () => this.fork())
    this.places = [first, ...others].map((worker) => this.keep(worker))
    // A worker that fails now will be replaced; nobody waits for that.
    await Promise.all(others.map((worker) => Promise.race([readyUrl(worker), exitOf(worker)])))
    return url
  }

  /** Stops each worker after it has served on for `delay_ms` and answered what it accepted; resolves when all are gone. */
  async stop(delay_ms: number): Promise<void> {
    this.ended.abort()
    for (const worker of living()) tell(worker, { annals: 'stop', delay_ms })
    const kill = setTimeout(() => {
      for (const worker of living()) worker.process.kill('SIGKILL')
    }, delay_ms + this.options.stop_ms_max)
    await Promise.all(this.places)
    clearTimeout(kill)
  }

  private fork(): Worker {
    return cluster.fork(this.options.env)
  }

  private async keep(first: Worker): Promise<void> {
    const { signal } = this.ended
    for (let worker = first, deaths = 0; ; worker = this.fork()) {
      const began = performance.now()
      await exitOf(worker)
      if (signal.aborted) return
      deaths = performance.now() - began < HEALTHY_MS ? deaths + 1 : 1
      const wait_ms = Math.min(RESTART_MS_MIN * 2 ** (deaths - 1), RESTART_MS_MAX)
      const { pid, exitCode, signalCode } = worker.process
      this.options.say(
        `Worker ${pid} ended (${signalCode ?? `code ${exitCode}`}); starting another in ${wait_ms} ms.`,
      )
      await sleep(wait_ms, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
    }
  }

  private hear(worker: Worker, message: unknown): void {
    const said = ours<FromWorker>(message)
    if (said?.annals !== 'metrics') return
    const { request } = said
    this.aggregator.clusterMetrics().then(
      (text) => tell(worker, { annals: 'metrics', request, text }),
      () => tell(worker, { annals: 'metrics', request, text: undefined }),
    )
  }
}

/** A free port: all workers, including later ones, must listen on the same one. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

function living(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

function tell(worker: Worker, message: FromPrimary): void {
  // A worker that has just ended needs no message.
  if (worker.isConnected()) worker.send(message, () => {})
}

function readyUrl(worker: Worker): Promise<string> {
  return new Promise((resolve) => {
    worker.on('message', (message: unknown) => {
      const said = ours<FromWorker>(message)
      if (said?.annals === 'ready') resolve(said.url)
    })
  })
}

async function exitOf(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  await once(worker, 'exit')
}
