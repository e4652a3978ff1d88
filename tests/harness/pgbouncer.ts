import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { proxyDatabase } from './database_proxy.ts'
import { databaseNameOf } from './database_url.ts'

const BINARY = '/usr/sbin/pgbouncer'
const NOBODY = 65_534
/** Fewer than the clients have connections, so that transactions of several share one. */
const POOL_SIZE = 6

/** Why tests with PgBouncer cannot run here; undefined where they can. */
export function reasonForNoPgBouncer(): string | undefined {
  return existsSync(BINARY) ? undefined : `${BINARY} is not there: apt-get install pgbouncer`
}

/** A PgBouncer in transaction mode, with nothing in its configuration that is there for Annals. */
export interface PgBouncer {
  /** The database as it is reached through it. */
  url: string
  stop(): Promise<void>
}

/** Starts a PgBouncer before the database's server. */
export async function startPgBouncer(databaseUrl: string): Promise<PgBouncer> {
  // PgBouncer refuses to be root, and the embedded server's socket lies where only root and that server come.
  const proxy = await proxyDatabase(databaseUrl)
  const { host, port, user, password } = new pg.Client({ connectionString: proxy.url })
  const directory = await mkdtemp(join(tmpdir(), 'annals-pgbouncer-'))
  const listenPort = await freePort()
  const server = [
    `host=${host}`,
    `port=${port}`,
    `user=${user}`,
    ...(password ? [`password=${password}`] : []),
  ]
  const file = join(directory, 'pgbouncer.ini')
  await writeFile(
    file,
    `[databases]
* = ${server.join(' ')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
max_client_conn = 500
`,
  )
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : undefined
  if (account) {
    await chmod(directory, 0o700)
    for (const path of [directory, file]) await chown(path, account.uid, account.gid)
  }
  const child: ChildProcess = spawn(BINARY, ['-q', file], { stdio: ['ignore', 'ignore', 'pipe'], ...account })
  let output = ''
  child.stderr!.on('data', (data) => {
    output += data
  })
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    await proxy.close()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await vi.waitFor(() => connects(listenPort), { timeout: 10_000, interval: 20 })
  } catch (error) {
    await stop()
    throw new Error(`PgBouncer did not start:\n${output}`, { cause: error })
  }
  return { url: `postgresql://anyone@127.0.0.1:${listenPort}/${databaseNameOf(databaseUrl)}`, stop }
}

async function connects(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
  } finally {
    socket.destroy()
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
