import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs } from '../../lab/children.ts'
import { ACCOUNT, copyEngine, makeDirectory } from './engine.ts'
import { freePort } from './free_port.ts'
import { Server, signalAll } from './server.ts'

const START_MS_MAX = 60_000

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '70',
  shared_buffers: '128MB',
  max_wal_size: '256MB',
  // Kept WAL segments would let it go on writing on a full disk for a while; without them it stops at once.
  wal_recycle: 'off',
  log_checkpoints: 'off',
  fsync: 'on',
}

/** The run's own PostgreSQL server, which can be killed, stopped, paused and restarted. */
export class Postgres extends Server {
  override readonly port: number
  readonly logFile: string
  private readonly bin: string
  private readonly data: string
  private readonly settings: Record<string, string>
  private process: ChildProcess | undefined

  private constructor(
    bin: string,
    data: string,
    port: number,
    logFile: string,
    settings: Record<string, string>,
  ) {
    super()
    this.bin = bin
    this.data = data
    this.port = port
    this.logFile = logFile
    this.settings = settings
  }

  /**
   * Creates a cluster below `data`, which must exist, and starts it with a database and a role `annals`.
   * @param settings in place of the usual ones
   * @param bin the folder of its programs; without it, those that npm installed
   */
  static async create(
    work: string,
    data: string,
    settings: Record<string, string> = {},
    bin?: string,
  ): Promise<Postgres> {
    bin ??= await copyEngine(work)
    await makeDirectory(data)
    const log = join(work, 'postgres.log')
    const postgres = new Postgres(bin, join(data, 'cluster'), await freePort(), log, settings)
    const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--no-locale']
    const initdb = postgres.spawn('initdb', ['--pgdata', postgres.data, ...options], data)
    const [code] = (await once(initdb, 'exit')) as [number]
    if (code !== 0) throw new Error(`initdb ended with code ${code}: see ${log}`)
    await postgres.start()
    await postgres.ask('CREATE ROLE annals LOGIN')
    await postgres.ask('CREATE ROLE hog LOGIN')
    await postgres.ask('CREATE DATABASE annals OWNER annals')
    return postgres
  }

  /** Where a node connects: as a user without privileges, so that it can be kept out. */
  override url(database = 'annals', port = this.port): string {
    return `postgresql://annals@127.0.0.1:${port}/${database}`
  }

  /** The superuser's way in. */
  override superuserUrl(database = 'annals'): string {
    return `postgresql://postgres@127.0.0.1:${this.port}/${database}`
  }

  get pid(): number {
    return this.process?.pid ?? 0
  }

  /** Starts the server, repeatedly if necessary, and resolves with the time of its first answer. */
  async start(environment: Record<string, string> = {}): Promise<number> {
    const deadline = performance.now() + START_MS_MAX
    const settings = Object.entries({ ...SETTINGS, ...this.settings, port: String(this.port) })
    const options = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])
    while (performance.now() < deadline) {
      // After a kill, the new server waits until the last backend of the old one is gone.
      if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) {
        this.process = this.spawn('postgres', ['-D', this.data, ...options], this.data, environment)
      }
      if (await this.answers()) return performance.now()
      await sleep(20)
    }
    throw new Error(`PostgreSQL did not come back: see ${this.logFile}`)
  }

  /** Sends a signal to the postmaster alone: SIGINT stops it fast, SIGQUIT immediately. */
  async stop(signal: 'SIGKILL' | 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const { process: child } = this
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  /** Stops or continues the postmaster and every process that it has started. */
  signalAll(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    return signalAll(this.pid, signal)
  }

  /** Whether the process runs; a full disk can end it. */
  get runs(): boolean {
    return this.process?.exitCode === null && this.process.signalCode === null
  }

  /** Where the server's log ends now. */
  endOfLog(): number {
    return statSync(this.logFile).size
  }

  /** How often a text occurs in the server's log after a position. */
  logged(what: RegExp, behind: number): number {
    const text = readFileSync(this.logFile).subarray(behind).toString()
    return text.match(new RegExp(what, 'g'))?.length ?? 0
  }

  /** Resolves with the time at which the server, which restarts by itself, answers again. */
  async recovered(behind: number): Promise<number> {
    const deadline = performance.now() + START_MS_MAX
    while (performance.now() < deadline) {
      if (this.logged(/ready to accept connections/, behind) > 0 && (await this.answers()))
        return performance.now()
      await sleep(10)
    }
    throw new Error(`PostgreSQL did not recover: see ${this.logFile}`)
  }

  private spawn(program: string, args: string[], cwd: string, environment = {}): ChildProcess {
    const log = openSync(this.logFile, 'a')
    const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC', ...environment }
    const child = spawn(join(this.bin, program), args, { cwd, env, stdio: ['ignore', log, log], ...ACCOUNT })
    closeSync(log)
    return endWithUs(child)
  }
}
