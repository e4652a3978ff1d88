import type pg from 'pg'
import { createFunctions } from './citus/distribute_functions.js'
import { boundLockWaits, onSchemaConnection, schemaTransaction } from './schema_change.js'
import type { ConnectionTarget } from './single_connection.js'
import type { StoredFunction } from './stored_function.js'

/*
 * A function that no version wants any more has three states. The install that does without it marks it with the time, for
 * nodes of the version before may be running; an install of a version that wants it again takes the mark away; and the
 * first install long after the mark drops it.
 */

/** A rolling upgrade, or the way back, is over by then. */
const KEPT_DAYS = 7

/** The comment that is the mark; its time is the database's, in UTC. */
const MARKED = '^superseded at ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)$'
const MARK = `SELECT to_char(now() AT TIME ZONE 'UTC', '"superseded at "YYYY-MM-DD"T"HH24:MI:SS"Z"') AS mark`

/** By the digest at the end of its name and the name of its first parameter: nobody else's function looks like that. */
const LIST_FUNCTIONS = `SELECT p.proname AS name, p.oid::regprocedure::text AS signature, d.at IS NOT NULL AS is_superseded,
  coalesce(d.at < now() - interval '${KEPT_DAYS} days', false) AS is_old
FROM pg_proc p
CROSS JOIN LATERAL (SELECT substring(obj_description(p.oid, 'pg_proc') FROM '${MARKED}')::timestamptz AS at) d
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname ~ '_[0-9a-f]{8}$'
  AND p.proargnames[1] IN ('p_project', 'project')`

interface Listed {
  name: string
  signature: string
  is_superseded: boolean
  is_old: boolean
}

/**
 * Creates the functions that are not there yet, makes them known to all machines of a cluster, and drops those that the
 * versions before the last one left.
 */
export async function installFunctions(
  target: ConnectionTarget,
  functions: readonly StoredFunction[],
  signal?: AbortSignal,
  onProgress?: (sentence: string) => void,
): Promise<void> {
  const wanted = new Map(functions.map((one) => [one.name, one]))
  await onSchemaConnection(target, async (client) => {
    if (isInstalled(wanted, await listFunctions(client))) return
    const install = async () => {
      // Of two nodes that start at once, the second waits here and finds nothing left to do.
      await client.query('LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE')
      await boundLockWaits(client)
      const there = await listFunctions(client)
      if (!isInstalled(wanted, there)) await change(client, wanted, there)
    }
    await schemaTransaction(client, target, install, { signal, onProgress })
  })
}

async function listFunctions(client: pg.Client): Promise<Listed[]> {
  return (await client.query<Listed>(LIST_FUNCTIONS)).rows
}

function isInstalled(wanted: ReadonlyMap<string, StoredFunction>, there: readonly Listed[]): boolean {
  const names = new Set(there.filter((one) => !one.is_superseded).map(({ name }) => name))
  return [...wanted.keys()].every((name) => names.has(name))
}

async function change(
  client: pg.Client,
  wanted: ReadonlyMap<string, StoredFunction>,
  there: readonly Listed[],
) {
  const { rows } = await client.query<{ mark: string }>(MARK)
  for (const { name, signature, is_superseded, is_old } of there) {
    if (wanted.has(name)) {
      if (is_superseded) await client.query(`COMMENT ON FUNCTION ${signature} IS NULL`)
    } else if (is_old) await client.query(`DROP FUNCTION ${signature}`)
    else if (!is_superseded) await client.query(`COMMENT ON FUNCTION ${signature} IS '${rows[0]!.mark}'`)
  }
  const names = new Set(there.map(({ name }) => name))
  await createFunctions(
    client,
    [...wanted.values()].filter(({ name }) => !names.has(name)),
  )
}
