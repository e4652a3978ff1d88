import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { runAnnals } from './annals_process.ts'
import { withDatabaseName } from './database_url.ts'
import { queryRows, withConnection } from './sql.ts'

/** A migrated database of a test's own on the cluster that the run works on. */
export interface ClusterDatabase {
  url: string
  /** Of each machine, as it is; the coordinator's first. */
  machines: string[]
  /** The address of the worker that has a project. */
  workerOf(project_id: string): Promise<string>
  /** To this database alone, the worker is away: it lets nobody in, and cuts those who are. */
  takeAway(worker: string): Promise<void>
  bringBack(worker: string): Promise<void>
  drop(): Promise<void>
}

interface ClusterOptions {
  /** Settings of the database on each machine, of those that only a superuser may set. */
  settings?: Record<string, string>
  /** What stands before a machine for all others, given its URL and answering with another one. */
  through?: (url: string) => Promise<string>
}

/** Undefined where it cannot be made: it takes a superuser, and machines that trust each other. */
export async function createClusterDatabase({
  settings = {},
  through = async (url) => url,
}: ClusterOptions = {}): Promise<ClusterDatabase | undefined> {
  const { serverUrl, prefix } = inject('testServer')
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  const machines = await queryRows<{ hostname: string; port: string; is_worker: boolean; may: string }>(
    serverUrl,
    `SELECT nodename AS hostname, nodeport::text AS port, groupid <> 0 AS is_worker, current_setting('is_superuser') AS may
     FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`,
  )
  if (machines[0]?.may !== 'on') return undefined
  const given = ({ hostname, port }: { hostname: string; port: string }) =>
    Object.assign(new URL(serverUrl), { hostname, port }).href
  const own = (machine: { hostname: string; port: string }) => withDatabaseName(given(machine), name)
  const onMachine = async (url: string, ...statements: string[]) =>
    withConnection(url, async (connection) => {
      for (const statement of statements) await connection.query(statement)
    })
  const drop = async () => {
    for (const machine of machines)
      await onMachine(given(machine), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
  const alone = ['create_database_propagation', 'ddl_propagation'].map(
    (what) => `SET citus.enable_${what} = off`,
  )
  const set = Object.entries(settings).map(([key, value]) => `ALTER DATABASE ${name} SET ${key} = '${value}'`)
  const reached: Array<{ hostname: string; port: string }> = []
  for (const machine of machines) {
    await onMachine(given(machine), ...alone, `CREATE DATABASE ${name}`, ...set)
    await onMachine(own(machine), 'CREATE EXTENSION citus')
    reached.push(new URL(await through(own(machine))))
  }
  const [coordinator, ...workers] = reached as [(typeof reached)[number]]
  const url = own(coordinator)
  await onMachine(
    own(machines[0]!),
    `SELECT citus_set_coordinator_host('${coordinator.hostname}', ${coordinator.port})`,
    ...workers.map(({ hostname, port }) => `SELECT citus_add_node('${hostname}', ${port})`),
  )
  const migrated = await runAnnals(['migrate'], { DATABASE_URL: url })
  if (migrated.code !== 0) throw new Error(migrated.stderr)
  const letIn = (worker: string, isIn: boolean, ...more: string[]) => {
    const machine = machines[reached.findIndex(({ hostname, port }) => `${hostname}:${port}` === worker)]!
    return onMachine(given(machine), `ALTER DATABASE ${name} ALLOW_CONNECTIONS ${isIn}`, ...more)
  }
  return {
    url,
    machines: machines.map(own),
    workerOf: async (project_id) => {
      const [row] = await queryRows<{ worker: string }>(
        url,
        `SELECT n.nodename || ':' || n.nodeport AS worker FROM pg_dist_placement p JOIN pg_dist_node n ON n.groupid = p.groupid
         WHERE p.shardid = get_shard_id_for_distribution_column('users', $1::uuid)`,
        [project_id],
      )
      return row!.worker
    },
    takeAway: (worker) =>
      letIn(
        worker,
        false,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      ),
    bringBack: (worker) => letIn(worker, true),
    drop,
  }
}
