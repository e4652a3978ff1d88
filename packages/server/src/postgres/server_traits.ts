import pg from 'pg'
import type { ConnectionTarget } from './database.js'

/** Traits of a server that statements depend on. */
export interface ServerTraits {
  /**
   * A pooler such as PgBouncer is between us and PostgreSQL. A server tells at the start of a connection which of its
   * processes serves it; a pooler invents that, because it changes from one transaction to the next. So there is no
   * session state: no prepared statements, no settings, no LISTEN. A pooler in session mode looks the same and is
   * treated the same.
   */
  pooled: boolean
  /** Its tables are distributed over a Citus cluster. */
  distributed: boolean
}

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
