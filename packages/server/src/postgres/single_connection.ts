import pg from 'pg'

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

/** Where a database is on this machine: the directory of its socket, and the number in the socket's name. */
export interface LocalTarget {
  host: string
  port: number
  database: string
  user: string
}

/** Where a database is, and how it is reached. */
export type ConnectionTarget = ({ connectionString: string } | LocalTarget) & Partial<ServerTraits>

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
