import {
  EMBEDDED_CONNECTIONS_MAX,
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  startEmbeddedPostgres,
} from '@annals/embedded-postgres'
import type { Config } from '../configuration/config.js'
import { StartError } from '../errors.js'
import { type HostedUrl, readDatabaseUrl } from './hosts.js'
import { CHANGES_CONNECTIONS, RESERVED_CONNECTIONS } from './pool_settings.js'
import {
  type ConnectionTarget,
  onSingleConnection,
  type ServerTraits,
  singleConnection,
  type Transport,
  transportOf,
} from './single_connection.js'

export interface DatabaseLocation {
  target: ConnectionTarget
  /** Where LISTEN works; undefined behind a pooler, where live tails find other nodes' appends by polling. */
  listening: ConnectionTarget | undefined
  description: string
  warnings: string[]
  /** Leaves the embedded server, which the last client stops. Does nothing for an operator's server. */
  release(): Promise<void>
}

/** Finds the configured database; starts the embedded one if none is configured. */
export async function locateDatabase(
  config: Config,
  onProgress: (sentence: string) => void,
): Promise<DatabaseLocation> {
  if (config.database_url !== undefined) {
    const url = readUrl('DATABASE_URL', config.database_url)
    const direct = config.database_direct_url && readUrl('DATABASE_DIRECT_URL', config.database_direct_url)
    const { transport, ...traits } = await traitsOf(url)
    const { pooled } = traits
    return {
      target: { ...url, ...traits },
      listening: direct || (pooled ? undefined : url),
      description: `${describeUrl(url)}${pooled ? ', through a pooler' : ''}`,
      warnings: transport === 'clear text' ? [CLEAR_TEXT] : [],
      release: async () => {},
    }
  }
  const embedded = await startEmbedded(config.data_dir, onProgress)
  return {
    target: embedded.connection,
    listening: embedded.connection,
    description: `embedded PostgreSQL, data in ${config.data_dir}`,
    warnings: [],
    release: () => embedded.release(),
  }
}

/** Whose server it is that runs in a data directory. */
export const EMBEDDED_NAME = 'annals'

/** Says how an operator chooses what an error of the embedded server advises. */
export function inSettings(error: EmbeddedPostgresError): StartError {
  const settings = 'ANNALS_DATA_DIR names the data directory, DATABASE_URL another server.'
  return new StartError(`${error.message} ${settings}`, { cause: error })
}

async function startEmbedded(
  dataDir: string,
  onProgress: (sentence: string) => void,
): Promise<EmbeddedPostgres> {
  try {
    return await startEmbeddedPostgres({ dataDir, name: EMBEDDED_NAME, onProgress })
  } catch (error) {
    throw error instanceof EmbeddedPostgresError ? inSettings(error) : error
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

const CLEAR_TEXT =
  'The database is on another machine, and the connection to it is not encrypted: whoever is between the two can read the data and become its user. Enable TLS on the server, and add ?sslmode=verify-full to DATABASE_URL.'

/** The driver reads a URL, and the files that it names, when a connection is made: of a pool, only then. */
export function readUrl(variable: string, text: string): HostedUrl {
  try {
    const url = readDatabaseUrl(text)
    singleConnection(url, 'annals')
    return url
  } catch (error) {
    // Its message may name a file, and never quotes the URL.
    throw new StartError(
      `${variable} cannot be used (${(error as Error).message}). Correct it; in a user name or password, write characters such as / ? # as %2F %3F %23.`,
    )
  }
}

function describeUrl({ connectionString, hosts }: HostedUrl): string {
  try {
    const url = new URL(connectionString)
    return `PostgreSQL at ${hosts ?? (url.host || url.searchParams.get('host') || 'localhost')}${url.pathname}`
  } catch {
    return 'PostgreSQL at DATABASE_URL'
  }
}

/** Detects a server's traits, and the way to it. If nothing answers it has none: the next connection will report why. */
export async function traitsOf(target: ConnectionTarget): Promise<ServerTraits & { transport?: Transport }> {
  const client = singleConnection(target, 'annals')
  try {
    const { rows } = await onSingleConnection(client, () =>
      client.query<{ pid: number; distributed: boolean }>(
        "SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS distributed",
      ),
    )
    const { pid, distributed } = rows[0]!
    const transport = transportOf(client)
    return { transport, pooled: pid !== (client as unknown as { processID: number }).processID, distributed }
  } catch {
    return { pooled: false, distributed: false }
  }
}
