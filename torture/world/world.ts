import { randomBytes } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startObjectStore, type TestObjectStore } from '../../lab/object_store.ts'
import type { Random } from '../../lab/random.ts'
import { mountSmallDisk, type SmallDisk } from '../../lab/small_disk.ts'
import type { OpenSession, Tenant } from '../clients/surroundings.ts'
import { Clock } from './clock.ts'
import { Cluster } from './cluster.ts'
import { Line } from './line.ts'
import { Model } from './model.ts'
import { ServiceNode } from './node.ts'
import { Postgres } from './postgres.ts'
import type { Server } from './server.ts'

/** The second node gives up on a statement soon, so that statement_timeout can be met. */
const STATEMENT_MS_MAX = 2_000

/** Everything in one run: a database, two nodes, and the proxies between them. */
export interface World {
  postgres: Server
  nodes: [ServiceNode, ServiceNode]
  /** Between the second node and the database. */
  databaseLine: Line
  /** What learning spaces ask. */
  model: Model
  /** Where attachments are; undefined: in the database. */
  objects: TestObjectStore | undefined
  disk: SmallDisk | undefined
  clock: Clock
  /** The schema after a single migration. */
  schema: string
  /** Sessions that were acknowledged, the newest last. */
  sessions: OpenSession[]
  adminToken: string
  /** Where logs are. */
  work: string
  /** Stops everything; the logs are kept if they may be useful. */
  end(keepLogs: boolean): Promise<void>
}

/** With a PostgreSQL of the run's own, which can be killed. */
export interface OwnWorld extends World {
  postgres: Postgres
}

/** On a Citus cluster, whose workers can be killed. */
export interface ClusterWorld extends World {
  postgres: Cluster
}

/** Starts two nodes on a database of the run's own, with the PostgreSQL in `bin`, or on the cluster that the URL names. */
export async function startWorld(random: Random, cluster_url?: string, bin?: string): Promise<World> {
  const work = await mkdtemp(join(tmpdir(), 'annals-torture-'))
  const diskPath = join(work, 'disk')
  await mkdir(diskPath)
  const disk = cluster_url ? undefined : await mountSmallDisk(diskPath)
  await chmod(work, 0o755)
  const postgres = cluster_url
    ? await Cluster.open(cluster_url, work)
    : await Postgres.create(work, join(diskPath, 'data'), {}, bin)
  const databaseLine = await Line.open(random.fork('database line'), postgres.port)
  const model = await Model.open(random.fork('model'))
  const objects = random.fork('objects').chance(0.5) ? await startObjectStore() : undefined
  const adminToken = randomBytes(24).toString('hex')
  const settings = {
    LOG_LEVEL: 'warn',
    ANNALS_ADMIN_TOKEN: adminToken,
    ANNALS_API_KEY: randomBytes(24).toString('hex'),
    ANNALS_MODEL_URL: model.url,
    ANNALS_MODEL: 'scripted',
    ANNALS_MODEL_MS_MAX: '2000',
    ANNALS_MODEL_TOKENS_PER_DAY_MAX: '1000000000',
    ANNALS_RETENTION_MS: '4000',
    ...objects?.env,
  }
  const nodes: [ServiceNode, ServiceNode] = [
    new ServiceNode('node-1', work, await Line.open(random.fork('line of node 1')), {
      ...settings,
      DATABASE_URL: postgres.url(),
    }),
    new ServiceNode('node-2', work, await Line.open(random.fork('line of node 2')), {
      ...settings,
      DATABASE_URL: postgres.url('annals', databaseLine.port),
      ANNALS_STATEMENT_MS_MAX: String(STATEMENT_MS_MAX),
      // One node flushes at once, the other gathers.
      ANNALS_GATHER_MS_MAX: '4',
    }),
  ]
  const memory = setInterval(() => {
    for (const node of nodes) node.sampleMemory()
  }, 200)
  await Promise.all(nodes.map((node) => node.start()))
  return {
    postgres,
    nodes,
    databaseLine,
    model,
    objects,
    disk,
    clock: new Clock(join(work, 'clock')),
    schema: await fingerprint(postgres.superuserUrl()),
    sessions: [],
    adminToken,
    work,
    end: async (keepLogs) => {
      clearInterval(memory)
      await Promise.all(nodes.map((node) => node.stop('SIGTERM')))
      for (const { line } of nodes) line.close()
      databaseLine.close()
      await model.close()
      await objects?.end()
      await postgres.stop('SIGINT')
      await disk?.unmount()
      if (!keepLogs) await rm(work, { recursive: true, force: true })
    },
  }
}

/** Every column, constraint and index of a schema, in one line. */
export async function fingerprint(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ line: string }>(`
SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) AS line
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT format('%s %s', version, name) FROM schema_migrations
ORDER BY line`)
  await client.end()
  return rows.map(({ line }) => line).join('\n')
}

/** A new project, with a token. `search`: its entries are indexed. */
export async function newTenant(world: World, name: string, search = false): Promise<Tenant> {
  const { data } = await askAdmin<{ project: { id: string }; token: string }>(world, 'POST', '', { name })
  if (search) await askAdmin(world, 'PATCH', `/${data.project.id}`, { search })
  return { project_id: data.project.id, token: data.token }
}

async function askAdmin<Data>({ nodes, adminToken }: World, method: string, path: string, body: object) {
  const response = await fetch(`${nodes[0].url}/admin/v1/projects${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}`)
  return (await response.json()) as { data: Data }
}

/** A new session of a project. */
export async function newSession({ nodes }: World, tenant: Tenant, marker: string): Promise<OpenSession> {
  const response = await fetch(`${nodes[0].url}/api/v1/session`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ configs: { marker } }),
  })
  const { data } = (await response.json()) as { data: { id: string } }
  return { session_id: data.id, tenant }
}

/** A new learning space of a project. */
export async function newSpace({ nodes }: World, { token }: Tenant, mode: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const url = `${nodes[0].url}/api/v1/learning_spaces`
  const response = await fetch(url, { method: 'POST', headers, body: '{}' })
  const { data } = (await response.json()) as { data: { id: string } }
  await fetch(`${url}/${data.id}/policy`, { method: 'PUT', headers, body: JSON.stringify({ mode }) })
  return data.id
}

/** Lists a project's sessions by last activity until that is prepared, which switches on the consumer that keeps it. */
export async function orderByActivity({ nodes }: World, { token }: Tenant): Promise<void> {
  for (;;) {
    const response = await fetch(`${nodes[0].url}/api/v1/session?order_by=last_activity`, {
      headers: { authorization: `Bearer ${token}` },
    })
    await response.arrayBuffer()
    if (response.status === 200) return
    if (response.status !== 503) throw new Error(`the list by last activity was answered ${response.status}`)
  }
}
