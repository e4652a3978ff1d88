import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import pg from 'pg'
import { ANNALS } from '../lab/launch_service.ts'
import { BenchFailure } from './failure.ts'
import { ROOT } from './root.ts'

/** A migrated database, and SQL on it. */
export interface BenchDatabase {
  /** For DATABASE_URL and for pgbench. */
  url: string
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>
  drop(): Promise<void>
}

/**
 * The PostgreSQL server that all parts share: the embedded one, in a directory of its own, or a given one. A `cluster`
 * is the coordinator of Citus, where no database can be made in passing: all parts use the one that is named.
 */
export class PostgresServer {
  readonly url: string
  readonly kind: 'embedded' | 'DATABASE_URL' | 'cluster'
  readonly stop: () => Promise<void>

  private constructor(url: string, kind: PostgresServer['kind'], stop: () => Promise<void>) {
    this.url = url
    this.kind = kind
    this.stop = stop
  }

  static async start(given: string | undefined, directory: string): Promise<PostgresServer> {
    if (given)
      return new PostgresServer(given, (await isCluster(given)) ? 'cluster' : 'DATABASE_URL', async () => {})
    // The service's own code, compiled, so that the server has the settings that its users get.
    const path = `${ROOT}packages/embedded-postgres/dist/index.js`
    const { startEmbeddedPostgres }: typeof import('../packages/embedded-postgres/dist/index.js') =
      await import(path)
    const embedded = await startEmbeddedPostgres({
      name: 'annals',
      dataDir: `${directory}/postgres`,
      onProgress: () => {},
    })
    const { host, port, user, database } = embedded.connection
    const url = `postgresql://${user}@/${database}?host=${host}&port=${port}`
    return new PostgresServer(url, 'embedded', () => embedded.release())
  }

  /** The server's version, and its settings that decide about speed. */
  async describe(): Promise<{ version: string; kind: string; settings: Record<string, string> }> {
    return withConnection(this.url, async (connection) => {
      const { rows } = await connection.query(
        `SELECT name, setting || coalesce(' ' || unit, '') AS setting FROM pg_settings WHERE name IN ('server_version',
         'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size', 'wal_sync_method')`,
      )
      const { server_version = '', ...settings } = Object.fromEntries(
        rows.map((row) => [row.name, row.setting]),
      )
      return { version: server_version, kind: this.kind, settings }
    })
  }

  /** A new database, migrated by the service's own command, or by that of another build. */
  async createDatabase(bin = ANNALS): Promise<BenchDatabase> {
    if (this.kind === 'cluster') return migrated(this.url, async () => {}, bin)
    const name = `annals_bench_${randomBytes(6).toString('hex')}`
    await withConnection(this.url, (connection) => connection.query(`CREATE DATABASE ${name}`))
    const url = withDatabaseName(this.url, name)
    const drop = async () => {
      await withConnection(this.url, (connection) =>
        connection.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
      )
    }
    return migrated(url, drop, bin)
  }
}

async function migrated(url: string, drop: () => Promise<void>, bin: string): Promise<BenchDatabase> {
  try {
    const env = { ...process.env, DATABASE_URL: url }
    await promisify(execFile)(process.execPath, [bin, 'migrate'], { env })
  } catch (error) {
    await drop()
    throw error
  }
  const query: BenchDatabase['query'] = (sql, values) =>
    withConnection(url, async (connection) => (await connection.query(sql, values)).rows as never)
  return { url, query, drop }
}

/** Whether the database has the extension of Citus. */
export async function isCluster(url: string): Promise<boolean> {
  return withConnection(url, async (connection) => {
    const { rowCount } = await connection.query("SELECT FROM pg_extension WHERE extname = 'citus'")
    return rowCount === 1
  })
}

/** Runs `work` on a connection of its own. */
export async function withConnection<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

// On the text: a URL that names a Unix socket has an empty host and is none that `new URL` takes.
function withDatabaseName(url: string, name: string): string {
  const match = /^(postgres(?:ql)?:\/\/[^/]*)(?:\/([^?]*))?(.*)$/.exec(url)
  if (!match) throw new BenchFailure('DATABASE_URL must look like postgresql://user@host:port/name.')
  return `${match[1]}/${name}${match[3]}`
}
