import pg from 'pg'
import { onSingleConnection, singleConnection } from '../single_connection.js'

/** What `pg` needs to reach the embedded server: the directory of its socket as host, database and user. */
export interface Connection {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

// SQLSTATEs of PostgreSQL (appendix A of its manual).
const TOO_MANY_CONNECTIONS = '53300'
const GOING_DOWN = ['57P01', '57P02', '57P03']

/**
 * Connects once and creates the database if it is missing. False: the server does not accept connections now, because
 * it is stopping or has just stopped. Only under the lock.
 */
export async function ensureDatabase(connection: Connection): Promise<boolean> {
  const client = singleConnection({ ...connection, database: 'postgres' }, 'annals start')
  try {
    await onSingleConnection(client, async () => {
      const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [connection.database])
      if (found.rowCount === 0) await client.query(`CREATE DATABASE "${connection.database}"`)
    })
    return true
  } catch (error) {
    // An error that the server did not send comes from a refused or broken connection.
    if (!(error instanceof pg.DatabaseError) || GOING_DOWN.includes(error.code ?? '')) return false
    // Then it is up and has the database: others are using it.
    if (error.code === TOO_MANY_CONNECTIONS) return true
    throw error
  }
}
