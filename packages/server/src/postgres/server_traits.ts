import pg from 'pg'
import type { ConnectionTarget, ServerTraits } from './connection_address.js'

export type { ServerTraits }

/** Detects a server's traits. If nothing answers it has none: the next connection will report why. */
export async function traitsOf(target: ConnectionTarget): Promise<ServerTraits> {
  const client = new pg.Client({
    ...target,
    application_name: 'annals',
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ pid: number; distributed: boolean }>(
      "SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS distributed",
    )
    const { pid, distributed } = rows[0]!
    return { pooled: pid !== (client as unknown as { processID: number }).processID, distributed }
  } catch {
    return { pooled: false, distributed: false }
  } finally {
    await client.end().catch(() => {})
  }
}
