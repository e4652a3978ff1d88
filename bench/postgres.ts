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
  /** One migrated database for each build, which the others are copies of: to migrate takes more than a second of a processor. */
  private readonly templates = new Map<string, Promise<BenchDatabase & { name: string }>>()
  private readonly end: () => Promise<void>

  private constructor(url: string, kind: PostgresServer['kind'], end: () => Promise<void>) {
    this.url = url
    this.kind = kind
    this.end = end
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
    if (this.kind === 'cluster') {
      const database = opened(this.url, async () => {})
      await migrate(database, bin)
      return database
    }
    let template = this.templates.get(bin)
    if (!template) {
      template = this.createTemplate(bin)
      this.templates.set(bin, template)
    }
    return this.create((await template).name)
  }

  async stop(): Promise<void> {
    for (const template of this.templates.values()) await template.then(({ drop }) => drop()).catch(() => {})
    await this.end()
  }

  private async createTemplate(bin: string): Promise<BenchDatabase & { name: string }> {
    const template = await this.create()
    try {
      await migrate(template, bin)
    } catch (error) {
      await template.drop()
      throw error
    }
    return template
  }

  private async create(template?: string): Promise<BenchDatabase & { name: string }> {
    const name = `annals_bench_${randomBytes(6).toString('hex')}`
    const from = template ? ` TEMPLATE ${template}` : ''
    const execute = (sql: string) => withConnection(this.url, (connection) => connection.query(sql))
    await execute(`CREATE DATABASE ${name}${from}`)
    const drop = async () => {
      await execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    }
    return { name, ...opened(withDatabaseName(this.url, name), drop) }
  }
}

async function migrate({ url }: BenchDatabase, bin: string): Promise<void> {
  const env = { ...process.env, DATABASE_URL: url }
  await promisify(execFile)(process.execPath, [bin, 'migrate'], { env })
}

function opened(url: string, drop: () => Promise<void>): BenchDatabase {
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
