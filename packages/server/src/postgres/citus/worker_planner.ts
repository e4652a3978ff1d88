import type pg from 'pg'
import { REQUEST_SETTINGS } from '../pool_settings.js'
import { onSchemaConnection, schemaTransaction } from '../schema_change.js'
import type { ConnectionTarget } from '../single_connection.js'

/*
 * The machines of a cluster connect to each other, as the user of the connection that they serve but without its
 * settings. With a server's own ones, a filtered list among two million sessions took 320 ms for compilation alone, and
 * 900 ms if its tables had not been analyzed yet; with these, 4 ms.
 */

/** Names and values. How often a plan is made anew is not among them: a function on a worker knows its shards. */
export const WORKER_SETTINGS = Object.entries(REQUEST_SETTINGS).filter(([name]) => name !== 'plan_cache_mode')

const READ_DEFAULTS = `SELECT split_part(s.setting, '=', 1) AS name
FROM pg_db_role_setting d CROSS JOIN unnest(d.setconfig) AS s (setting)
WHERE d.setdatabase = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
  AND d.setrole = (SELECT r.oid FROM pg_roles r WHERE r.rolname = current_user)`

/**
 * Has the workers of a cluster plan statements as the connections that serve requests do: by defaults of this user in
 * this database, which Citus passes on to all machines, also to those that are added later. A default that is there
 * already stays as it is.
 */
export async function setPlannerOfWorkers(target: ConnectionTarget, signal?: AbortSignal): Promise<void> {
  if (!target.distributed) return
  await onSchemaConnection(target, async (client) => {
    if ((await missingDefaults(client)).length === 0) return
    const set = async () => {
      // Of two nodes that start at once, the second waits here and finds nothing left to do.
      await client.query('LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE')
      const { rows } = await client.query<{ name: string }>('SELECT quote_ident(current_database()) AS name')
      for (const [name, value] of await missingDefaults(client))
        await client.query(`ALTER ROLE CURRENT_USER IN DATABASE ${rows[0]!.name} SET ${name} = '${value}'`)
    }
    await schemaTransaction(client, target, set, { signal })
  })
}

async function missingDefaults(client: pg.Client): Promise<typeof WORKER_SETTINGS> {
  const { rows } = await client.query<{ name: string }>(READ_DEFAULTS)
  const there = new Set(rows.map(({ name }) => name))
  return WORKER_SETTINGS.filter(([name]) => !there.has(name))
}
