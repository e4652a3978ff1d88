import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { StartError } from '../errors.js'
import { cancelBackend } from './cancel_statement.js'
import type { ConnectionTarget } from './database.js'
import { isTransient, isUndefinedTable, isUniqueViolation, sqlStateOf } from './database_errors.js'
import { migrationStatements } from './migration_statements.js'

const MIGRATIONS_DIR = fileURLToPath(new URL('../../migrations/', import.meta.url))
const SERVER_VERSION_MIN = 15
const ATTEMPTS_MAX = 20

let newestVersion: number | undefined

interface Migration {
  version: number
  name: string
  file: URL
}

/**
 * Migrates the schema to the version of this binary. Forward only. Each migration is one transaction that inserts its
 * version row first: if two nodes start at once, the second waits on that row, sees it taken and goes on with the
 * next. A migration that is killed, or aborted by `signal`, leaves nothing behind.
 *
 * @throws StartError if the schema is newer than this binary, or the server too old or unreachable
 */
export async function migrate(
  target: ConnectionTarget,
  onApplied: (migration: string, is_new_schema: boolean) => void = () => {},
  signal?: AbortSignal,
): Promise<void> {
  const client = await connect(target)
  try {
    await checkServer(client)
    await createVersionTable(client)
    const known = readMigrations()
    const newest = known.at(-1)?.version ?? 0
    const is_new = (await appliedVersion(client)) === 0
    for (const migration of known) {
      if (await apply(client, migration, target, signal)) onApplied(migration.name, is_new)
    }
    await refuseNewerSchema(client, newest)
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * Checks that the schema has the version of this binary, and changes nothing.
 * @throws StartError if it is older or newer, or the server too old or unreachable
 */
export async function checkSchema(target: ConnectionTarget): Promise<void> {
  const client = await connect(target)
  try {
    await checkServer(client)
    await refuseNewerSchema(client, schemaVersion())
    const found = await appliedVersion(client)
    if (found < schemaVersion()) {
      throw new StartError(
        `The database has schema version ${found}, but this version of Annals needs ${schemaVersion()}. Run "annals migrate", or start the service, and try again.`,
      )
    }
  } finally {
    await client.end().catch(() => {})
  }
}

/** A connection for schema changes. @throws StartError if there is none */
export async function connect(target: ConnectionTarget): Promise<pg.Client> {
  try {
    const client = new pg.Client({
      ...target,
      application_name: 'annals migrate',
      connectionTimeoutMillis: 10_000,
    })
    client.on('error', () => {})
    await client.connect()
    return client
  } catch (error) {
    throw new StartError(
      `The database cannot be reached (${(error as Error).message || (error as { code?: string }).code}). Check DATABASE_URL and that the server runs.`,
    )
  }
}

/**
 * Makes PostgreSQL cancel this transaction's statement when `signal` aborts, instead of finishing what nobody waits
 * for. Returns a function to call before the transaction ends.
 */
export async function cancelOnAbort(
  client: pg.Client,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
): Promise<() => void> {
  signal?.throwIfAborted()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const onAbort = () => void cancelBackend(target, rows[0]!.pid)
  signal?.addEventListener('abort', onAbort)
  return () => signal?.removeEventListener('abort', onAbort)
}

/** The schema version of this binary. */
export function schemaVersion(): number {
  newestVersion ??= readMigrations().at(-1)?.version ?? 0
  return newestVersion
}

function readMigrations(): Migration[] {
  return readdirSync(MIGRATIONS_DIR)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort()
    .map((name) => ({
      version: Number(name.slice(0, 4)),
      name,
      file: new URL(name, new URL('../../migrations/', import.meta.url)),
    }))
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string; server_version: string }>(
    `SELECT current_setting('server_version_num') AS server_version_num, current_setting('server_version') AS server_version`,
  )
  const row = rows[0]!
  if (Number(row.server_version_num) < SERVER_VERSION_MIN * 10_000) {
    throw new StartError(
      `The database server is PostgreSQL ${row.server_version}; Annals needs ${SERVER_VERSION_MIN} or newer. Upgrade it, or point DATABASE_URL at a newer one.`,
    )
  }
}

async function createVersionTable(client: pg.Client): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(
        'CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
      )
      return
    } catch (error) {
      // IF NOT EXISTS does not cover two concurrent creators: the loser violates a unique index of the catalogue.
      const raced = isUniqueViolation(error) || ['42P07', '42710'].includes(sqlStateOf(error) ?? '')
      if (!raced || attempt >= ATTEMPTS_MAX) throw explainRefusal(error)
    }
  }
}

/** Applies one migration unless it was applied already. Returns whether it did. */
async function apply(
  client: pg.Client,
  migration: Migration,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    let end = () => {}
    try {
      await client.query('BEGIN')
      end = await cancelOnAbort(client, target, signal)
      const { rowCount } = await client.query(
        'INSERT INTO schema_migrations (version, name) VALUES ($1, $2) ON CONFLICT (version) DO NOTHING',
        [migration.version, migration.name],
      )
      if (rowCount === 1)
        for (const statement of migrationStatements(readFileSync(migration.file, 'utf8')))
          await client.query(statement)
      end()
      await client.query('COMMIT')
      return rowCount === 1
    } catch (error) {
      end()
      await client.query('ROLLBACK').catch(() => {})
      signal?.throwIfAborted()
      if (!isTransient(error) || attempt >= ATTEMPTS_MAX) throw explainRefusal(error, migration.name)
    }
  }
}

/** The newest migration that was applied; 0 if none. */
async function appliedVersion(client: pg.Client): Promise<number> {
  try {
    const { rows } = await client.query<{ version: number | null }>(
      'SELECT max(version) AS version FROM schema_migrations',
    )
    return rows[0]?.version ?? 0
  } catch (error) {
    if (isUndefinedTable(error)) return 0
    throw error
  }
}

async function refuseNewerSchema(client: pg.Client, newest: number): Promise<void> {
  const found = await appliedVersion(client)
  if (found > newest) {
    throw new StartError(
      `The database has schema version ${found}, but this version of Annals knows up to ${newest}. A newer version has migrated it: start that one, or a newer one.`,
    )
  }
}

function explainRefusal(error: unknown, migration?: string): unknown {
  if (sqlStateOf(error) === '42501') {
    return new StartError(
      `The database user cannot create tables (${(error as Error).message}). Grant it CREATE on the schema, or run "annals migrate" as an owner.`,
    )
  }
  if (migration && error instanceof Error) error.message = `migration ${migration}: ${error.message}`
  return error
}
