import pg from 'pg'
import type { ConnectionTarget } from './connection_address.js'

/**
 * A connection of its own, beside the pools, which is not open yet. `purpose` is its name in the server's list of
 * clients. Without a listener, an error between two statements would end the process.
 */
export function singleConnection(
  target: ConnectionTarget,
  purpose: string,
  options: pg.ClientConfig = {},
): pg.Client {
  const client = new pg.Client({
    ...target,
    application_name: purpose,
    connectionTimeoutMillis: 10_000,
    ...options,
  })
  client.on('error', () => {})
  return client
}

/** Runs work on such a connection, and closes it. */
export async function onSingleConnection<T>(
  client: pg.Client,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}
