import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { ServerConnection } from '@annals/embedded-postgres'
import type pg from 'pg'
import { isLoopback } from '../configuration/exposure.js'
import { HostedClient, type Hosts } from './hosts.js'

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

/** Where a database is, and how it is reached. */
export type ConnectionTarget = ({ connectionString: string; hosts?: Hosts | undefined } | ServerConnection) &
  Partial<ServerTraits> & { options?: string | undefined }

/**
 * A connection of its own, beside the pools, which is not open yet. `purpose` is its name in the server's list of
 * clients.
 */
export function singleConnection(
  target: ConnectionTarget,
  purpose: string,
  options: pg.ClientConfig = {},
): pg.Client {
  return new HostedClient({
    ...target,
    application_name: purpose,
    connectionTimeoutMillis: 10_000,
    ...options,
  })
}

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

/** Protection of a connection. `unverified`: readable by a machine in between. */
export type Transport = 'local' | 'encrypted' | 'unverified' | 'clear text'

export function transportOf(client: pg.Client): Transport {
  const { stream } = (client as unknown as { connection: pg.Connection }).connection
  const { remoteAddress, localAddress } = stream as Socket
  if (stream instanceof TLSSocket) {
    const { ssl } = client as unknown as { ssl: boolean | { rejectUnauthorized?: boolean } }
    return ssl === true || (ssl as { rejectUnauthorized?: boolean }).rejectUnauthorized !== false
      ? 'encrypted'
      : 'unverified'
  }
  const isLocal = !remoteAddress || remoteAddress === localAddress || isLoopback(remoteAddress)
  return isLocal ? 'local' : 'clear text'
}
