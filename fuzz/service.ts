import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { FuzzFailure } from './failure.ts'
import { ROOT } from './root.ts'

const ANNALS_BIN = fileURLToPath(new URL('packages/server/bin/annals.js', ROOT))
const EMBEDDED = new URL('packages/server/dist/database/embedded/embedded_postgres.js', ROOT)

/** A service of the run's own, on an embedded PostgreSQL of its own, both gone after it. */
export interface Service {
  url: string
  databaseUrl: string
  adminToken: string
  /** What it wrote to its log at level warn and above. */
  complaints: string[]
  stop(): Promise<void>
}

interface Embedded {
  startEmbeddedPostgres(options: { dataDir: string; onProgress: () => void }): Promise<{
    connection: { host: string; port: number; user: string; database: string }
    release(): Promise<void>
  }>
}

export async function startService(): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-fuzz-'))
  const { startEmbeddedPostgres } = (await import(EMBEDDED.href)) as Embedded
  const embedded = await startEmbeddedPostgres({ dataDir: join(directory, 'data'), onProgress: () => {} })
  const { host, port, user, database } = embedded.connection
  const databaseUrl = `postgresql://${user}@/${database}?host=${host}&port=${port}`
  const adminToken = `admin-${randomBytes(24).toString('base64url')}`
  const complaints: string[] = []
  const { PATH = '', HOME = '/' } = process.env
  const child = spawn(process.execPath, [ANNALS_BIN, 'serve'], {
    env: {
      PATH,
      HOME,
      PORT: '0',
      LOG_LEVEL: 'warn',
      DATABASE_URL: databaseUrl,
      ANNALS_ADMIN_TOKEN: adminToken,
    },
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  createInterface({ input: child.stderr }).on('line', (line) => line.startsWith('{') && complaints.push(line))
  const exited = once(child, 'exit')
  const url = await readyUrl(child)
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
    await embedded.release()
    await rm(directory, { recursive: true, force: true })
  }
  if (url === undefined) {
    await stop()
    throw new FuzzFailure(`The service did not start: ${complaints.join('\n')}`)
  }
  return { url, databaseUrl, adminToken, complaints, stop }
}

async function readyUrl(child: ChildProcess): Promise<string | undefined> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /^Annals is ready at (http:\S+)/.exec(line)?.[1]
    if (url) {
      child.stdout!.resume()
      return url
    }
  }
  return undefined
}
