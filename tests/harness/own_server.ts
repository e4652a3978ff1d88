import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { socketUrl } from './database_url.ts'

export interface OwnServer {
  url: string
  /** Its data, which may be copied while it is stopped. */
  data: string
  stop(): Promise<void>
  start(): Promise<void>
  remove(): Promise<void>
}

/**
 * A server of nobody else's, from npm's binaries: for the run, and for what a test may do to no other server. `from`: the
 * data of another one, which is stopped. `standby`: it only reads, as a replica does, until it is promoted.
 */
export async function startOwnServer({
  from,
  standby,
}: {
  from?: string
  standby?: true
} = {}): Promise<OwnServer> {
  const { startEmbeddedPostgres } = await import('../../packages/embedded-postgres/dist/index.js')
  const directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
  const data = join(directory, 'data')
  if (from) await cp(from, data, { recursive: true, preserveTimestamps: true })
  if (standby) await writeFile(join(data, 'postgres', 'standby.signal'), '')
  const start = () => startEmbeddedPostgres({ name: 'annals', dataDir: data, onProgress: () => {} })
  let running: Awaited<ReturnType<typeof start>> | undefined = await start()
  const stop = async () => {
    await running?.release()
    running = undefined
  }
  return {
    url: socketUrl(running.connection),
    data,
    stop,
    start: async () => {
      running = await start()
    },
    remove: async () => {
      await stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
