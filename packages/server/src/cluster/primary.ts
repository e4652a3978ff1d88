import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import { type FromPrimary, type FromWorker, ours } from './messages.js'

const RESTART_MS_MIN = 100
const RESTART_MS_MAX = 10_000
/** A worker that lived for this long did not die of its start. */
const HEALTHY_MS = 60_000

export interface WorkersOptions {
  count: number
  /** Arguments of a worker's command line, behind the program. */
  args: string[]
  env: Record<string, string>
  /** How long a worker may take to stop before it is killed, in ms. */
  stop_ms_max: number
  /** Tells the operator what happens to workers. */
  say: (sentence: string) => void
}

/** The first worker ended before it served, and has said why. */
export class FirstWorkerFailed extends Error {
  constructor(readonly exit_code: number) {
    super('the first worker did not start')
  }
}

/**
 * Processes that share a port, and the one that starts them. Each of `count` places goes round:
 *
 *   starting ── it says that it is ready ──▶ serving ── it ends ──▶ waiting (longer each time) ──▶ starting
 *
 * until `stop`. The first place starts alone: what keeps a worker from starting is said once and ends everything.
 */
export class Workers {
  private readonly aggregator = new AggregatorRegistry()
  private readonly ended = new AbortController()
  private places: Promise<void>[] = []

  constructor(private readonly options: WorkersOptions) {
    cluster.setupPrimary({ args: options.args })
    cluster.on('message', (worker, message) => this.hear(worker, message))
  }

  /** Starts all and resolves with their URL when all of them serve. @throws FirstWorkerFailed */
  async start(): Promise<string> {
    const first = this.fork()
    const url = await Promise.race([readyUrl(first), exitOf(first).then(() => undefined)])
    if (url === undefined) throw new FirstWorkerFailed(first.process.exitCode ?? 1)
    const others = Array.from({ length: this.options.count - 1 }, () => this.fork())
    this.places = [first, ...others].map((worker) => this.keep(worker))
    // One that fails now has a successor before long; nobody waits for that.
    await Promise.all(others.map((worker) => Promise.race([readyUrl(worker), exitOf(worker)])))
    return url
  }

  /** Has each worker answer what it accepted, and resolves when all are gone. */
  async stop(): Promise<void> {
    this.ended.abort()
    for (const worker of living()) tell(worker, { annals: 'stop' })
    const kill = setTimeout(() => {
      for (const worker of living()) worker.process.kill('SIGKILL')
    }, this.options.stop_ms_max)
    await Promise.all(this.places)
    clearTimeout(kill)
  }

  private fork(): Worker {
    return cluster.fork(this.options.env)
  }

  /** Keeps one place filled. */
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

/** A port that is free: all workers, also later ones, must listen on the same. */
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
  // One that has just ended needs to hear nothing.
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
