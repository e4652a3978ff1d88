import pg from 'pg'
import type { ConnectionTarget } from './database.js'

/**
 * Whether a pooler such as PgBouncer stands between us and PostgreSQL. A server says at the start of a connection
 * which of its processes serves it; a pooler makes that up, since this changes from one transaction to the next. So
 * nothing then may be kept in the session: no prepared statements, no settings, no LISTEN. A pooler in session
 * mode looks the same and is treated so as well. False where nothing answers: who connects next will say why.
 */
export async function isPooled(target: ConnectionTarget): Promise<boolean> {
  const client = new pg.Client({
    ...target,
    application_name: 'annals',
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return rows[0]?.pid !== (client as unknown as { processID: number }).processID
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
