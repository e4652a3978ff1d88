import type pg from 'pg'
import { StartError } from '../../errors.js'
import type { ConnectionTarget } from '../database.js'
import { migrations } from '../migrations.js'
import { boundLockWaits, onSchemaConnection, schemaTransaction } from '../schema_change.js'
import type { StoredFunction } from '../stored_function.js'
import { createFunctions } from './distribute_functions.js'

// recheck: it reads our own migrations, which are short and not a caller's.
const STEP = /PERFORM (create_(?:reference_table|distributed_table|distributed_function)\('(\w+)[^;]*\));/g

/** A call that makes a table, or a function that statements call, known to all machines of a cluster. */
export interface DistributionStep {
  kind: 'table' | 'function'
  name: string
  /** The call, as written in a migration. */
  call: string
}

/** All steps in order, read from the migrations, which run them by themselves if Citus is installed. */
export function distributionSteps(): DistributionStep[] {
  return migrations()
    .flatMap((migration) => [...migration.read().matchAll(STEP)])
    .map(([, call, name]) => ({
      kind: call!.startsWith('create_distributed_function') ? 'function' : 'table',
      name: name!,
      call: call!,
    }))
}

/**
 * Distributes a migrated database, with its data, over the machines of its Citus cluster, as the migrations do if the
 * extension was there before them. All tables in one transaction, which blocks readers and writers; a second run
 * finds nothing to do. Returns the tables that it distributed.
 * @throws StartError if the database has no Citus
 */
export async function distribute(
  target: ConnectionTarget,
  functions: readonly StoredFunction[],
  onProgress: (sentence: string) => void,
  signal?: AbortSignal,
): Promise<string[]> {
  return onSchemaConnection(target, async (client) => {
    const { rows } = await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
    if (rows.length === 0) {
      throw new StartError(
        'The database has no Citus. Install it on all machines, run CREATE EXTENSION citus in this database, add the workers with citus_add_node, and run this again.',
      )
    }
    const work = () => distributeTables(client, functions, onProgress, signal)
    const tables = await schemaTransaction(client, target, work, { signal, onProgress })
    for (const name of tables) await emptyOldCopy(client, name, onProgress)
    return tables
  })
}

async function distributeTables(
  client: pg.Client,
  functions: readonly StoredFunction[],
  onProgress: (sentence: string) => void,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  // No migration, and no other run of this, at the same time. Foreign keys to reference tables require shards to be
  // handled one after the other.
  await client.query('LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE')
  await client.query("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
  const { rows } = await client.query<{ name: string }>(
    'SELECT p.logicalrelid::regclass::text AS name FROM pg_dist_partition p',
  )
  const distributed = new Set(rows.map(({ name }) => name))
  const steps = distributionSteps().filter(({ kind, name }) => kind === 'function' || !distributed.has(name))
  const names = steps.filter(({ kind }) => kind === 'table').map(({ name }) => name)
  if (names.length === 0) return []
  // All at once, and none of them for long: what has been moved so far would have to be moved again.
  await boundLockWaits(client)
  await client.query(`LOCK TABLE ${names.join(', ')} IN ACCESS EXCLUSIVE MODE`)
  await client.query('SET LOCAL lock_timeout TO 0')
  // A table cannot be moved while one that is not yet in place refers to it, so keys are dropped first and restored
  // after.
  const keys = await foreignKeys(client, names)
  for (const { table, name } of keys) await client.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`)
  for (const { call, name, kind } of steps) {
    signal?.throwIfAborted()
    onProgress(`Distributing ${kind} ${name}`)
    await client.query(`SELECT ${call}`)
  }
  for (const { table, name, definition } of keys)
    await client.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`)
  // On one PostgreSQL they were others.
  await createFunctions(client, functions)
  return names
}

async function foreignKeys(client: pg.Client, tables: string[]) {
  const { rows } = await client.query<{ table: string; name: string; definition: string }>(
    `SELECT c.conrelid::regclass::text AS table, quote_ident(c.conname) AS name, pg_get_constraintdef(c.oid) AS definition
FROM pg_constraint c
WHERE c.contype = 'f' AND (c.conrelid = ANY ($1::regclass[]) OR c.confrelid = ANY ($1::regclass[]))
ORDER BY c.oid`,
    [tables],
  )
  return rows
}

/** The coordinator's leftovers of a table that was moved: they only take disk space. */
async function emptyOldCopy(
  client: pg.Client,
  name: string,
  onProgress: (sentence: string) => void,
): Promise<void> {
  try {
    await client.query('SELECT truncate_local_data_after_distributing_table($1::regclass)', [name])
  } catch (error) {
    onProgress(`The coordinator's old copy of ${name} is still there (${(error as Error).message}).`)
  }
}
