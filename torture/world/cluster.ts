import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server, signalAll } from './server.ts'

const START_MS_MAX = 60_000

const POSTMASTERS = `
SELECT n.nodename AS host, n.nodeport AS port, split_part(r.result, E'\\n', 1)::int AS pid
FROM pg_dist_node n JOIN run_command_on_workers($$SELECT pg_read_file('postmaster.pid')$$) r ON r.nodename = n.nodename AND r.nodeport = n.nodeport
WHERE n.groupid > 0 ORDER BY n.nodeport`

/**
 * A Citus cluster that runs already: nodes reach it through its coordinator. All of its workers are processes of this
 * machine, which may signal and start them.
 */
export class Cluster extends Server {
  readonly workers: Worker[] = []
  private readonly given: URL

  private constructor(given: string) {
    super()
    this.given = new URL(given)
  }

  /** `given` is a superuser's URL of a database on the coordinator. */
  static async open(given: string, work: string): Promise<Cluster> {
    const cluster = new Cluster(given)
    for (const { host, port, pid } of await cluster.ask<{ host: string; port: number; pid: number }>(
      POSTMASTERS,
    ))
      cluster.workers.push(new Worker(cluster.urlOf(host, port), port, pid, join(work, `worker-${port}.log`)))
    if (cluster.workers.length < 2) throw new Error('The cluster has less than two workers.')
    return cluster
  }

  override get port(): number {
    return Number(this.given.port)
  }

  override url(_database?: string, port = this.port): string {
    return this.urlOf(this.given.hostname, port)
  }

  override superuserUrl(): string {
    return this.given.href
  }

  /** The port of the worker that has a project. */
  async portOf(project_id: string): Promise<number> {
    const [row] = await this.ask<{ port: number }>(
      "SELECT s.nodeport AS port FROM citus_shards s WHERE s.shardid = get_shard_id_for_distribution_column('users', $1::uuid)",
      [project_id],
    )
    return row!.port
  }

  /** The cluster stays, with all its workers. */
  override async stop(): Promise<void> {
    for (const worker of this.workers) await worker.start()
  }

  private urlOf(host: string, port: number): string {
    return Object.assign(new URL(this.given), { hostname: host, port: String(port) }).href
  }
}

/** A worker of a cluster. */
export class Worker extends Server {
  override readonly port: number
  private readonly address: string
  private readonly logFile: string
  private readonly command: string[]
  private readonly environment: Record<string, string>
  private readonly account: { uid: number; gid: number }
  private pid: number

  constructor(address: string, port: number, pid: number, logFile: string) {
    super()
    this.address = address
    this.port = port
    this.pid = pid
    this.logFile = logFile
    const command = listOf(`/proc/${pid}/cmdline`)
    if (!command[0]?.includes('postgres'))
      throw new Error(`The worker at port ${port} is not a process of this machine.`)
    this.command = command
    this.environment = Object.fromEntries(
      listOf(`/proc/${pid}/environ`).map((variable) => variable.split(/=(.*)/s, 2)),
    )
    const { uid, gid } = statSync(`/proc/${pid}`)
    this.account = { uid, gid }
  }

  override url(): string {
    return this.address
  }

  override superuserUrl(): string {
    return this.address
  }

  /** kill -9 of its postmaster, after which its other processes end by themselves. */
  async kill(): Promise<void> {
    process.kill(this.pid, 'SIGKILL')
    while (this.runs()) await sleep(10)
  }

  signalAll(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    return signalAll(this.pid, signal)
  }

  override stop(): Promise<void> {
    return this.kill()
  }

  /** Starts it as it was started before, repeatedly if necessary, and resolves with the time of its first answer. */
  async start(): Promise<number> {
    const deadline = performance.now() + START_MS_MAX
    while (performance.now() < deadline) {
      if (!this.runs()) this.launch()
      if (await this.answers()) return performance.now()
      await sleep(20)
    }
    throw new Error(`The worker at port ${this.port} did not come back: see ${this.logFile}`)
  }

  private runs(): boolean {
    try {
      // One that has ended and that nobody has waited for has no program any more.
      return readlinkSync(`/proc/${this.pid}/exe`) !== ''
    } catch {
      return false
    }
  }

  private launch(): void {
    const log = openSync(this.logFile, 'a')
    const [program, ...args] = this.command
    const child = spawn(program!, args, {
      cwd: '/',
      env: this.environment,
      detached: true,
      stdio: ['ignore', log, log],
      ...this.account,
    })
    closeSync(log)
    child.unref()
    this.pid = child.pid!
  }
}

function listOf(path: string): string[] {
  return readFileSync(path, 'utf8').split('\0').slice(0, -1)
}
