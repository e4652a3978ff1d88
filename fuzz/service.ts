import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { launchService } from '../lab/launch_service.ts'
import { ROOT } from '../lab/root.ts'
import { FuzzFailure } from './failure.ts'

const EMBEDDED = new URL('packages/embedded-postgres/dist/index.js', ROOT)

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
  startEmbeddedPostgres(options: { name: string; dataDir: string; onProgress: () => void }): Promise<{
    connection: { host: string; port: number; user: string; database: string }
    release(): Promise<void>
  }>
}

export async function startService(): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-fuzz-'))
  const { startEmbeddedPostgres } = (await import(EMBEDDED.href)) as Embedded
  const embedded = await startEmbeddedPostgres({
    name: 'annals',
    dataDir: join(directory, 'data'),
    onProgress: () => {},
  })
  const { host, port, user, database } = embedded.connection
  const databaseUrl = `postgresql://${user}@/${database}?host=${host}&port=${port}`
  const adminToken = `admin-${randomBytes(24).toString('base64url')}`
  const complaints: string[] = []
  const {
    child,
    exited,
    url: ready,
  } = launchService({
    env: { LOG_LEVEL: 'warn', DATABASE_URL: databaseUrl, ANNALS_ADMIN_TOKEN: adminToken },
    cwd: directory,
    stderr: 'pipe',
  })
  createInterface({ input: child.stderr! }).on(
    'line',
    (line) => line.startsWith('{') && complaints.push(line),
  )
  const url = await ready
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
