import type pg from 'pg'
import { DatabaseNotReady, StartError } from '../errors.js'
import type { ConnectionTarget } from './database.js'
import { isTransient, isUndefinedTable, isUniqueViolation, sqlStateOf } from './database_errors.js'
import { type Migration, migrationStatements, migrations, schemaVersion } from './migrations.js'
import {
  boundLockWaits,
  onSchemaConnection,
  type SchemaTransactionOptions,
  schemaTransaction,
} from './schema_change.js'

const SERVER_VERSION_MIN = 15
const ATTEMPTS_MAX = 20

/**
 * Migrates the schema to the version of this binary. Forward only. Each migration is one transaction that inserts its
 * version row first: if two nodes start at once, the second waits on that row, sees it taken and goes on with the
 * next. A migration that is killed, or aborted by `signal`, leaves nothing behind.
 *
 * @throws StartError if the schema is newer than this binary, the server too old or unreachable, or a table always in use
 */
export async function migrate(
  target: ConnectionTarget,
  onApplied: (migration: string, is_new_schema: boolean) => void = () => {},
  signal?: AbortSignal,
  onProgress: (sentence: string) => void = () => {},
): Promise<void> {
  await onSchemaConnection(target, async (client) => {
    await checkServer(client)
    await checkWritable(client)
    await createVersionTable(client)
    // All up to it are applied: each is committed before the next begins.
    const applied = await appliedVersion(client)
    for (const migration of migrations().filter(({ version }) => version > applied))
      if (await apply(client, migration, target, { signal, onProgress }))
        onApplied(migration.name, applied === 0)
    await refuseNewerSchema(client)
  })
}

/**
 * Checks that the schema has the version of this binary, and changes nothing.
 * @throws StartError if it is older or newer, or the server too old or unreachable
 */
export async function checkSchema(target: ConnectionTarget): Promise<void> {
  await onSchemaConnection(target, async (client) => {
    await checkServer(client)
    await refuseNewerSchema(client)
    const found = await appliedVersion(client)
    if (found < schemaVersion())
      throw new StartError(
        `The database has schema version ${found}, but this version of Annals needs ${schemaVersion()}. Run "annals migrate", or start the service, and try again.`,
      )
  })
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

/** Fails before the first write would, in words that say what to do. */
async function checkWritable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<
    Record<'encoding' | 'schema' | 'path' | 'standby' | 'read_only', string>
  >(
    `SELECT getdatabaseencoding() AS encoding, current_schema() AS schema, current_setting('search_path') AS path,
       pg_is_in_recovery()::text AS standby, current_setting('transaction_read_only') AS read_only`,
  )
  const { encoding, schema, path, standby, read_only } = rows[0]!
  if (standby === 'true')
    throw new DatabaseNotReady(
      'The database server is a standby and cannot be written. Point DATABASE_URL at the primary, or name all hosts in it with target_session_attrs=read-write, or promote this one.',
    )
  if (read_only === 'on')
    throw new DatabaseNotReady(
      'The database is read-only: default_transaction_read_only is on. Find where it was set (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE), and RESET it.',
    )
  if (encoding !== 'UTF8')
    throw new StartError(
      `The database has the encoding ${encoding}, and Annals needs UTF8. Create another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`,
    )
  if (schema === null)
    throw new StartError(
      `No schema in search_path (${path || 'it is empty'}) exists for this user. Create one, or name an existing one: ALTER ROLE … SET search_path = public.`,
    )
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
  { signal, onProgress }: SchemaTransactionOptions,
): Promise<boolean> {
  const named = (sentence: string) => onProgress?.(`Migration ${migration.name}: ${sentence}`)
  const applyOnce = async () => {
    const { rowCount } = await client.query(
      'INSERT INTO schema_migrations (version, name) VALUES ($1, $2) ON CONFLICT (version) DO NOTHING',
      [migration.version, migration.name],
    )
    if (rowCount !== 1) return false
    await boundLockWaits(client)
    for (const statement of migrationStatements(migration.read())) await client.query(statement)
    return true
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await schemaTransaction(client, target, applyOnce, { signal, onProgress: named })
    } catch (error) {
      signal?.throwIfAborted()
      if (!isTransient(error) || attempt >= ATTEMPTS_MAX) throw explainRefusal(error, migration.name)
    }
  }
}

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

async function refuseNewerSchema(client: pg.Client): Promise<void> {
  const found = await appliedVersion(client)
  if (found > schemaVersion()) {
    throw new StartError(
      `The database has schema version ${found}, but this version of Annals knows up to ${schemaVersion()}. A newer version has migrated it: start that version, or a newer one.`,
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
