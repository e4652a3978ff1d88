import pg from 'pg'
import type { ConnectionTarget } from './database.js'

/** What a server is, as far as statements must know of it. */
export interface ServerTraits {
  /**
   * A pooler such as PgBouncer stands between us and PostgreSQL. A server says at the start of a connection which of
   * its processes serves it; a pooler makes that up, since this changes from one transaction to the next. So nothing
   * then may be kept in the session: no prepared statements, no settings, no LISTEN. A pooler in session mode looks
   * the same and is treated so as well.
   */
  pooled: boolean
  /** It spreads its tables over a Citus cluster. */
  distributed: boolean
}

/** Asks a server what it is. Where nothing answers it is none of this: who connects next will say why. */
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
