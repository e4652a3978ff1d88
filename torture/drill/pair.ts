import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { appendFile, cp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs } from '../../lab/children.ts'
import { ACCOUNT, makeDirectory } from '../world/engine.ts'
import { freePort } from '../world/free_port.ts'
import { Server, signalAll } from '../world/server.ts'

const WAIT_MS_MAX = 60_000

/** One of two PostgreSQL servers, of which each may be the primary. */
export class Member extends Server {
  readonly name: string
  override readonly port: number
  private readonly bin: string
  private readonly work: string
  private process: ChildProcess | undefined

  private constructor(name: string, bin: string, work: string, port: number) {
    super()
    this.name = name
    this.bin = bin
    this.work = work
    this.port = port
  }

  static async create(name: string, bin: string, work: string): Promise<Member> {
    return new Member(name, bin, work, await freePort())
  }

  get data(): string {
    return join(this.work, this.name)
  }

  override url(): string {
    return `postgresql://annals@127.0.0.1:${this.port}/annals`
  }

  override superuserUrl(database = 'annals'): string {
    return `postgresql://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Makes it a new primary with a role that owns a database. */
  async initialize(): Promise<void> {
    const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--no-locale']
    const [code] = await once(this.spawn('initdb', ['--pgdata', this.data, ...options]), 'exit')
    if (code !== 0) throw new Error(`initdb ended with code ${code}: see ${this.work}`)
    await this.start()
    await this.ask('CREATE ROLE annals LOGIN')
    await this.ask('CREATE DATABASE annals OWNER annals')
  }

  /** Makes it the standby of a primary, from a copy of its data; the primary stands still meanwhile. */
  async follow(primary: Member): Promise<void> {
    await this.stop('SIGKILL')
    await rm(this.data, { recursive: true, force: true })
    await primary.stop('SIGINT')
    await cp(primary.data, this.data, { recursive: true, preserveTimestamps: true })
    // The copy belongs to whoever copied it.
    if (ACCOUNT) {
      const owner = `${ACCOUNT.uid}:${ACCOUNT.gid}`
      await once(spawn('chown', ['-R', owner, this.data], { stdio: 'ignore' }), 'exit')
    }
    await this.listenTo(primary)
    await Promise.all([primary.start(), this.start()])
    await primary.hasStandby()
  }

  /** Has it, while it is stopped, follow a primary from its next start on. */
  async listenTo(primary: Member): Promise<void> {
    const way = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`
    await writeFile(join(this.data, 'standby.signal'), '')
    await appendFile(join(this.data, 'postgresql.auto.conf'), `\nprimary_conninfo = '${way}'\n`)
  }

  async start(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '70',
      wal_keep_size: '512MB',
      wal_receiver_status_interval: '1s',
    }
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    this.process = this.spawn('postgres', ['-D', this.data, ...options])
    await until(`${this.name} answers`, () => this.answers())
  }

  override async stop(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
    const { process: child } = this
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    if (signal === 'SIGKILL') await signalAll(child.pid!, 'SIGCONT')
    child.kill(signal)
    await gone
  }

  /** As a machine that has gone: connections stay open, and nothing is answered. */
  freeze(): Promise<void> {
    return signalAll(this.process!.pid!, 'SIGSTOP')
  }

  async promote(): Promise<void> {
    await this.ask('SELECT pg_promote(true)')
  }

  async set(name: string, value: string): Promise<void> {
    await this.ask(`ALTER SYSTEM SET ${name} = '${value}'`)
    await this.ask('SELECT pg_reload_conf()')
  }

  /** Waits until the standby has everything. */
  hasStandby(): Promise<void> {
    const caughtUp = `SELECT FROM pg_stat_replication r WHERE r.state = 'streaming' AND r.replay_lsn >= pg_current_wal_lsn()`
    return until('the standby has caught up', async () => (await this.ask(caughtUp)).length > 0)
  }

  private spawn(program: string, args: string[]): ChildProcess {
    const log = openSync(join(this.work, `${this.name}.log`), 'a')
    const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' }
    const stdio: ['ignore', number, number] = ['ignore', log, log]
    const child = spawn(join(this.bin, program), args, { cwd: this.work, env, stdio, ...ACCOUNT })
    closeSync(log)
    return endWithUs(child)
  }
}

/** A primary and its standby, whose data is below a directory of PostgreSQL's account. */
export async function startPair(bin: string, work: string): Promise<[Member, Member]> {
  await makeDirectory(work)
  const primary = await Member.create('first', bin, work)
  const standby = await Member.create('second', bin, work)
  await primary.initialize()
  await standby.follow(primary)
  return [primary, standby]
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}`)
    await sleep(50)
  }
}
