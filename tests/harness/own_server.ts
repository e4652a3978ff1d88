import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { socketUrl } from './database_url.ts'

/** A server of nobody else's, from npm's binaries: for the run, and for what a test may do to no other server. */
export async function startOwnServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const { startEmbeddedPostgres } = await import(
    '../../packages/server/dist/postgres/embedded/embedded_postgres.js'
  )
  const directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
  const embedded = await startEmbeddedPostgres({ dataDir: join(directory, 'data'), onProgress: () => {} })
  return {
    url: socketUrl(embedded.connection),
    stop: async () => {
      await embedded.release()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
