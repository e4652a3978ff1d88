import type pg from 'pg'
import type { ClientBase } from 'pg'
import type { Queryable, Row } from '../database.js'
import { REQUEST_SETTINGS } from '../pool_settings.js'
import { onSchemaConnection, schemaTransaction } from '../schema_change.js'
import { type ConnectionTarget, onSingleConnection, singleConnection } from '../single_connection.js'
import { planned } from '../statement.js'

const LIST_WORKERS = planned(
  'list_workers',
  "SELECT n.nodename AS host, n.nodeport AS port FROM pg_dist_node n WHERE n.groupid <> 0 AND n.noderole = 'primary' ORDER BY 1, 2",
)

/** Identifies a server until its next restart. */
const SIGNATURE = 'SELECT extract(epoch FROM pg_postmaster_start_time())::text AS signature'

/** The same of a worker, as the coordinator reaches it. Parameters: $1 host, $2 port. */
const SIGNATURE_OF_WORKER = planned(
  'signature_of_worker',
  `SELECT w.result AS signature
FROM master_run_on_worker(ARRAY[$1::text], ARRAY[$2::int], ARRAY['${SIGNATURE}'], false) w WHERE w.success`,
)

/** Nobody need wait longer for a worker: there is the coordinator. */
export const CONNECT_MS_MAX = 1_000

const ASK_SIGNATURE = { text: SIGNATURE, query_timeout: CONNECT_MS_MAX }

/** The URL of a worker, which takes the same user, password, database and encryption as the coordinator. */
export function urlOfWorker(coordinator: string, host: string, port: string): string {
  // With a socket of the machine, there is no host after the password, as the driver accepts it.
  const url = new URL(URL.canParse(coordinator) ? coordinator : coordinator.replace('@/', '@coordinator/'))
  for (const overriding of ['host', 'port']) url.searchParams.delete(overriding)
  return Object.assign(url, { hostname: host.includes(':') ? `[${host}]` : host, port }).href
}

/**
 * Checks that a new connection leads to the server that the coordinator has at this address: a name may mean another
 * machine here than there, which may even have such a database.
 */
export function recognize(
  coordinator: Queryable,
  host: string,
  port: string,
): (client: ClientBase) => Promise<void> {
  let expected: string | null | undefined
  return async (client) => {
    const { rows } = await client.query<Row>(ASK_SIGNATURE)
    if (rows[0]!.signature === expected) return
    // It was never asked for, or the worker has started since.
    const [seen] = await coordinator.query(SIGNATURE_OF_WORKER, [host, port])
    expected = seen?.signature
    if (!expected) throw new Error('the coordinator cannot reach it, either')
    if (rows[0]!.signature !== expected)
      throw new Error('another server than the coordinator has at this address')
  }
}

/** Row: worker, and its settings by name, as JSON. Parameters: $1 the names, separated by commas. */
const SETTINGS_OF_WORKERS = planned(
  'settings_of_workers',
  `SELECT w.nodename || ':' || w.nodeport AS worker, w.result AS settings
FROM run_command_on_workers(format(
  'SELECT json_object_agg(name, setting) FROM pg_settings WHERE name = ANY (string_to_array(%L, '',''))', $1::text)) w
WHERE w.success`,
)

/** The workers that plan otherwise than the connections that serve requests, each with the settings that differ. */
export async function findOtherPlanners(coordinator: Queryable): Promise<string[]> {
  const rows = await coordinator.query(SETTINGS_OF_WORKERS, [WORKER_SETTINGS.map(([name]) => name).join()])
  return rows.flatMap(({ worker, settings }) => {
    const found = JSON.parse(settings!) as Record<string, string>
    const other = WORKER_SETTINGS.filter(([name, value]) => found[name] !== value)
    return other.length === 0
      ? []
      : `${worker} (${other.map(([name]) => `${name} = ${found[name]}`).join(', ')})`
  })
}

/** Row: worker, its search_path. What runs there is not told where the tables are. */
const LOST_WORKERS = planned(
  'workers_without_tables',
  `SELECT w.nodename || ':' || w.nodeport AS worker, w.result AS search_path
FROM run_command_on_workers('SELECT CASE WHEN to_regclass(''session_heads'') IS NULL THEN ''search_path = '' || current_setting(''search_path'') END') w
WHERE w.success AND w.result <> ''`,
)

/** The workers that do not find the tables by their names, each with its search_path. */
export async function findLostWorkers(coordinator: Queryable): Promise<string[]> {
  const rows = await coordinator.query(LOST_WORKERS, [])
  return rows.map(({ worker, search_path }) => `${worker} (${search_path})`)
}

/** Rows: a machine, and another one that it cannot connect to as this user. */
const SHUT_OUT = planned(
  'machines_shut_out',
  `SELECT DISTINCT h.from_nodename || ':' || h.from_nodeport AS one, h.to_nodename || ':' || h.to_nodeport AS other
FROM citus_check_cluster_node_health() h WHERE h.result IS DISTINCT FROM true ORDER BY 1, 2`,
)

/** The machines that others do not let in, or that cannot reach them: "from → to". */
export async function findShutOut(coordinator: Queryable): Promise<string[]> {
  const rows = await coordinator.query(SHUT_OUT, [])
  return rows.map(({ one, other }) => `${one} to ${other}`)
}

/** The workers that cannot be reached directly, each with the reason. */
export async function findUnreached(coordinator: Queryable, connectionString: string): Promise<string[]> {
  const rows = await coordinator.query(LIST_WORKERS, [])
  const found = rows.map(async (row) => {
    const [host, port] = [row.host!, row.port!]
    const client = singleConnection(
      { connectionString: urlOfWorker(connectionString, host, port) },
      'annals doctor',
      { connectionTimeoutMillis: CONNECT_MS_MAX },
    )
    return onSingleConnection(client, recognize(coordinator, host, port)).then(
      () => [],
      (error: Error) => [`${host}:${port} (${error.message})`],
    )
  })
  return (await Promise.all(found)).flat()
}

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
