import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { endWithUs } from '../../lab/children.ts'
import { ACCOUNT, makeDirectory } from '../world/engine.ts'
import { freePort } from '../world/free_port.ts'

const BINARY = '/usr/sbin/pgbouncer'
const WAIT_MS_MAX = 10_000

/** A PgBouncer in transaction mode, which leads to the primary that the operator names. */
export class Pooler {
  private readonly work: string
  private readonly port: number
  private process: ChildProcess | undefined

  private constructor(work: string, port: number) {
    this.work = work
    this.port = port
  }

  static async start(work: string, primary_port: number): Promise<Pooler> {
    const pooler = new Pooler(await makeDirectory(work), await freePort())
    await pooler.write(primary_port)
    await pooler.start()
    return pooler
  }

  get url(): string {
    return `postgresql://annals@127.0.0.1:${this.port}/annals`
  }

  async start(): Promise<void> {
    this.process = endWithUs(spawn(BINARY, ['-q', this.file], { stdio: 'ignore', ...ACCOUNT }))
    for (const deadline = performance.now() + WAIT_MS_MAX; ; await sleep(50)) {
      const error = await this.tell('SHOW VERSION').then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error === undefined) return
      if (performance.now() > deadline) throw error
    }
  }

  async stop(): Promise<void> {
    const child = this.process!
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** A command of its console. */
  async tell(command: string): Promise<void> {
    const connectionString = `postgresql://operator@127.0.0.1:${this.port}/pgbouncer`
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: WAIT_MS_MAX })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(command)
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** Has it lead to another primary. */
  async lead(primary_port: number): Promise<void> {
    await this.write(primary_port)
    await this.tell('RELOAD')
    await this.tell('RECONNECT')
  }

  private get file(): string {
    return join(this.work, 'pgbouncer.ini')
  }

  private async write(primary_port: number): Promise<void> {
    const text = `[databases]
annals = host=127.0.0.1 port=${primary_port} user=annals
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${this.port}
unix_socket_dir =
auth_type = any
admin_users = operator
logfile = ${join(this.work, 'pgbouncer.log')}
pool_mode = transaction
default_pool_size = 30
max_client_conn = 200
server_lifetime = 5
server_login_retry = 1
`
    await writeFile(this.file, text)
    if (ACCOUNT) await chown(this.file, ACCOUNT.uid, ACCOUNT.gid)
  }
}
