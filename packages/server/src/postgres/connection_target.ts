import type { Config } from '../configuration/config.js'
import { StartError } from '../errors.js'
import { startEmbeddedPostgres } from './embedded/embedded_postgres.js'
import { EMBEDDED_CONNECTIONS_MAX } from './embedded/settings.js'
import { CHANGES_CONNECTIONS, RESERVED_CONNECTIONS } from './pool_settings.js'
import {
  type ConnectionTarget,
  onSingleConnection,
  type ServerTraits,
  singleConnection,
} from './single_connection.js'

export interface DatabaseLocation {
  target: ConnectionTarget
  /** Where LISTEN works; undefined behind a pooler, where live tails find other nodes' appends by polling. */
  listening: ConnectionTarget | undefined
  /** Where the data is, in words, without a password. */
  description: string
  /** Leaves the embedded server, which the last client stops. Does nothing for an operator's server. */
  release(): Promise<void>
}

/** Finds the configured database; starts the embedded one if none is configured. */
export async function locateDatabase(
  config: Config,
  onProgress: (sentence: string) => void,
): Promise<DatabaseLocation> {
  if (config.database_url !== undefined) {
    const connectionString = config.database_url
    checkUrl('DATABASE_URL', connectionString)
    if (config.database_direct_url) checkUrl('DATABASE_DIRECT_URL', config.database_direct_url)
    const traits = await traitsOf({ connectionString })
    const { pooled } = traits
    const direct = config.database_direct_url ?? (pooled ? undefined : connectionString)
    return {
      target: { connectionString, ...traits },
      listening: direct === undefined ? undefined : { connectionString: direct },
      description: `${describeUrl(connectionString)}${pooled ? ', through a pooler' : ''}`,
      release: async () => {},
    }
  }
  const embedded = await startEmbeddedPostgres({ dataDir: config.data_dir, onProgress })
  return {
    target: embedded.connection,
    listening: embedded.connection,
    description: `embedded PostgreSQL, data in ${config.data_dir}`,
    release: () => embedded.release(),
  }
}

/** Most connections of one process. */
export function connectionsOf(config: Config): number {
  // The pools', one that listens while a tail is open, and one for the availability probe.
  return config.database_connections_max + config.flushes_max + RESERVED_CONNECTIONS + CHANGES_CONNECTIONS + 2
}

/**
 * Checks that so many processes fit into the embedded server; only its operator knows that of another server.
 * @throws StartError
 */
export function checkEmbeddedConnections(config: Config, processes: number): void {
  const each = connectionsOf(config)
  if (config.database_url !== undefined || processes * each <= EMBEDDED_CONNECTIONS_MAX) return
  throw new StartError(
    `${processes} workers with ${each} connections each are more than the embedded PostgreSQL has (${EMBEDDED_CONNECTIONS_MAX}). Start fewer workers, or lower ANNALS_DATABASE_CONNECTIONS_MAX.`,
  )
}

/** The driver reads a URL, and the files that it names, when a connection is made: of a pool, only then. */
function checkUrl(variable: string, connectionString: string): void {
  try {
    singleConnection({ connectionString }, 'annals')
  } catch (error) {
    // Its message may name a file, and never quotes the URL.
    throw new StartError(
      `${variable} cannot be used (${(error as Error).message}). Correct it; in a user name or password, write characters such as / ? # as %2F %3F %23.`,
    )
  }
}

function describeUrl(text: string): string {
  try {
    const url = new URL(text)
    return `PostgreSQL at ${url.host || url.searchParams.get('host') || 'localhost'}${url.pathname}`
  } catch {
    return 'PostgreSQL at DATABASE_URL'
  }
}

/** Detects a server's traits. If nothing answers it has none: the next connection will report why. */
export async function traitsOf(target: ConnectionTarget): Promise<ServerTraits> {
  const client = singleConnection(target, 'annals')
  try {
    const { rows } = await onSingleConnection(client, () =>
      client.query<{ pid: number; distributed: boolean }>(
        "SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS distributed",
      ),
    )
    const { pid, distributed } = rows[0]!
    return { pooled: pid !== (client as unknown as { processID: number }).processID, distributed }
  } catch {
    return { pooled: false, distributed: false }
  }
}
