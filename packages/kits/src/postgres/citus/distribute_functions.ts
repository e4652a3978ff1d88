import type pg from 'pg'
import type { StoredFunction } from '../stored_function.js'

/** Those that no machine runs by their project yet: an install makes few of them, and each takes a round to all machines. */
const FIND_UNDISTRIBUTED = `SELECT p.oid::regprocedure::text AS signature FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proargnames[1] = 'p_project' AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_dist_object o
  WHERE o.classid = 'pg_proc'::regclass AND o.objid = p.oid AND o.distribution_argument_index IS NOT NULL)`

export async function createFunctions(
  client: pg.Client,
  functions: readonly StoredFunction[],
): Promise<void> {
  const isOnCluster = await isDistributed(client)
  for (const { definition, definition_on_cluster } of functions)
    await client.query(isOnCluster ? definition_on_cluster : definition)
  if (!isOnCluster) return
  const { rows } = await client.query<{ signature: string }>(FIND_UNDISTRIBUTED)
  for (const { signature } of rows)
    await client.query(
      "SELECT create_distributed_function($1::regprocedure, 'p_project', colocate_with => 'users')",
      [signature],
    )
}

async function isDistributed(client: pg.Client): Promise<boolean> {
  const citus = await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
  if (citus.rows.length === 0) return false
  const tables = await client.query(
    "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass AND partmethod = 'h'",
  )
  return tables.rows.length > 0
}
