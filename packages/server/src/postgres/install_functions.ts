import type pg from 'pg'
import { boundLockWaits, onSchemaConnection, schemaTransaction } from './schema_change.js'
import { SHARDS_HERE, SHARDS_HERE_ON_A_CLUSTER } from './shards_here.js'
import type { ConnectionTarget } from './single_connection.js'
import type { StoredFunction } from './stored_function.js'

type Installed = Pick<StoredFunction, 'name' | 'definition'>

/**
 * Creates the functions that are not there yet, and makes them known to all machines of a cluster. Those of other
 * versions stay: nodes of these may be running.
 */
export async function installFunctions(
  target: ConnectionTarget,
  functions: readonly StoredFunction[],
  signal?: AbortSignal,
  onProgress?: (sentence: string) => void,
): Promise<void> {
  const wanted = [SHARDS_HERE, ...functions]
  await onSchemaConnection(target, async (client) => {
    if ((await missingFunctions(client, wanted)).length === 0) return
    const install = async () => {
      // Of two nodes that start at once, the second waits here and finds nothing left to do.
      await client.query('LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE')
      await boundLockWaits(client)
      for (const { definition } of await missingFunctions(client, wanted)) await client.query(definition)
      await distributeFunctions(client)
    }
    await schemaTransaction(client, target, install, { signal, onProgress })
  })
}

/** Has Citus run the stored functions where their project is, if the tables are distributed. */
export async function distributeFunctions(client: pg.Client): Promise<void> {
  const citus = await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
  if (citus.rows.length === 0) return
  const tables = await client.query(
    "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass AND partmethod = 'h'",
  )
  if (tables.rows.length === 0) return
  await client.query(SHARDS_HERE_ON_A_CLUSTER)
  const { rows } = await client.query<{ signature: string }>(
    `SELECT p.oid::regprocedure::text AS signature FROM pg_proc p
     WHERE p.pronamespace = current_schema()::regnamespace AND p.proargnames[1] = 'p_project'`,
  )
  for (const { signature } of rows)
    await client.query(
      "SELECT create_distributed_function($1::regprocedure, 'p_project', colocate_with => 'users')",
      [signature],
    )
}

async function missingFunctions(client: pg.Client, functions: readonly Installed[]): Promise<Installed[]> {
  const { rows } = await client.query<{ name: string }>(
    'SELECT p.proname AS name FROM pg_proc p WHERE p.proname = ANY ($1) AND p.pronamespace = current_schema()::regnamespace',
    [functions.map(({ name }) => name)],
  )
  const there = new Set(rows.map(({ name }) => name))
  return functions.filter(({ name }) => !there.has(name))
}
