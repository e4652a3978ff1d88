import { existsSync } from 'node:fs'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ACCOUNT, makeDirectory } from '../../torture/world/engine.ts'
import { Postgres } from '../../torture/world/postgres.ts'
import { ADMIN_TOKEN, expectOrderlyEnds, startServer } from '../harness/annals_process.ts'
import { apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { withDatabasePassword } from '../harness/database_url.ts'
import { doctor } from '../harness/doctor.ts'
import { expectOk } from '../harness/expectations.ts'
import { httpClient } from '../harness/http_client.ts'
import { createProject } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

/** Debian's PostgreSQL, where it has Citus: npm's has none. */
const DEBIAN = [18, 17, 16, 15]
  .map((major) => `/usr/lib/postgresql/${major}`)
  .find((folder) => existsSync(join(folder, 'lib/citus.so')))

/** docs/scale.md, "Citus", steps 1 and 2. */
const SETTINGS = {
  shared_preload_libraries: 'citus',
  max_connections: '200',
  max_prepared_transactions: '200',
  wal_level: 'logical',
  'citus.recover_2pc_interval': '2s',
  'citus.shard_count': '4',
  // So that nobody waits for a disk.
  fsync: 'off',
}
const PASSWORDS = { annals: 'of-the-service', postgres: 'of-the-superuser' }
type User = keyof typeof PASSWORDS
const USERS = Object.keys(PASSWORDS) as User[]
/** The tests themselves ask in the database postgres. */
const WITH_PASSWORDS = `host postgres all 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

/** Step 3 without passwords between the machines, for a coordinator and two workers. */
async function startMachines(bin: string) {
  const work = await mkdtemp(join(tmpdir(), 'annals-cluster-'))
  onTestFinished(() => rm(work, { recursive: true, force: true }))
  await chmod(work, 0o755)
  const home = await makeDirectory(join(work, 'home'))
  const machines: Postgres[] = []
  for (let n = 0; n < 3; n++) {
    const data = await makeDirectory(join(work, `data_${n}`))
    const machine = await Postgres.create(await makeDirectory(join(work, `server_${n}`)), data, SETTINGS, bin)
    onTestFinished(() => machine.stop('SIGQUIT'))
    machines.push(machine)
    for (const user of USERS) await machine.ask(`ALTER ROLE ${user} PASSWORD '${PASSWORDS[user]}'`)
    await machine.ask('CREATE EXTENSION citus', [], 'annals')
    await writeFile(join(data, 'cluster/pg_hba.conf'), WITH_PASSWORDS)
    await machine.stop('SIGINT')
    await machine.start({ HOME: home })
  }
  const [coordinator, ...workers] = machines as [Postgres, Postgres, Postgres]
  return { coordinator, workers, machines, home }
}

type Machines = Awaited<ReturnType<typeof startMachines>>

/** Asks as the superuser in the database of the service. */
const ask = <Row extends object>(machine: Postgres, statement: string) =>
  queryRows<Row>(withDatabasePassword(machine.superuserUrl(), PASSWORDS.postgres), statement)

/** The two ways of step 3 in which machines know passwords. */
const WAYS: Record<string, (machines: Machines, users: readonly User[]) => Promise<void>> = {
  'a .pgpass file': async ({ machines, home }, users) => {
    const path = join(home, '.pgpass')
    const lines = machines.flatMap(({ port }) =>
      users.map((user) => `127.0.0.1:${port}:annals:${user}:${PASSWORDS[user]}\n`),
    )
    await writeFile(path, lines.join(''), { mode: 0o600 })
    if (ACCOUNT) await chown(path, ACCOUNT.uid, ACCOUNT.gid)
  },
  pg_dist_authinfo: async ({ machines }, users) => {
    for (const machine of machines)
      for (const user of users)
        await ask(
          machine,
          `INSERT INTO pg_dist_authinfo VALUES (0, '${user}', 'password=${PASSWORDS[user]}') ON CONFLICT DO NOTHING`,
        )
  },
}

/** Step 4. */
async function addWorkers({ coordinator, workers }: Machines): Promise<void> {
  await ask(coordinator, `SELECT citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`)
  for (const { port } of workers) await ask(coordinator, `SELECT citus_add_node('127.0.0.1', ${port})`)
}

/** What a service does with projects on each worker. */
async function useEachWorker(DATABASE_URL: string, { coordinator }: Machines): Promise<void> {
  const node = await startServer({ DATABASE_URL })
  const used = new Set<number>()
  while (used.size < 2) {
    const { id, token } = await createProject(httpClient(node.url, ADMIN_TOKEN))
    const log = await newSessionLog(apiClient(node.url, token))
    await log.addEvent('note', { text: 'stored' })
    expect(expectOk(await apiClient(node.url, token).getSession(log.id)).id).toBe(log.id)
    const [row] = await ask<{ nodeport: number }>(
      coordinator,
      `SELECT nodeport FROM citus_shards WHERE shardid = get_shard_id_for_distribution_column('sessions', '${id}'::uuid)`,
    )
    used.add(row!.nodeport)
  }
  expectOrderlyEnds([await node.stop()])
}

describe.skipIf(!DEBIAN)('machines of a cluster that want passwords of each other', () => {
  it.each(Object.keys(WAYS).slice(0, IS_THOROUGH ? undefined : 1))(
    'serve by the steps of docs/scale.md, and each refusal is a sentence that names the machine: %s',
    async (way) => {
      const machines = await startMachines(join(DEBIAN!, 'bin'))
      const { coordinator, workers } = machines
      const DATABASE_URL = withDatabasePassword(coordinator.url(), PASSWORDS.annals)
      const refuses = async (...args: string[]) => {
        const { code, stderr } = await runCommand(args, { DATABASE_URL })
        const last = stderr.trim().split('\n').at(-1)
        expect(last).toMatch(
          /^annals: The machines of the cluster do not let each other in: annals@127\.0\.0\.1:\d+ \(.*password.*\)\. .*docs\/scale\.md/,
        )
        expect(stderr).not.toMatch(/report it|^ +at /m)
        expect(code).toBe(1)
      }
      await WAYS[way]!(machines, ['postgres'])
      await addWorkers(machines)
      await refuses('migrate')
      await WAYS[way]!(machines, USERS)
      expect(await runCommand(['migrate'], { DATABASE_URL })).toMatchObject({ code: 0 })
      await useEachWorker(DATABASE_URL, machines)
      const clean = await doctor({ DATABASE_URL })
      expect(clean.of('cluster').map(({ state }) => state)).toEqual(Array(5).fill('ok'))
      // A password that was changed on one machine alone.
      const [changed] = workers
      await changed!.ask(`ALTER ROLE annals PASSWORD 'another'`)
      await refuses('project', 'create', 'refused')
      const found = await doctor({ DATABASE_URL })
      const shutOut = found.of('cluster').find(({ state }) => state === 'failure')
      expect(shutOut?.found).toContain(`127.0.0.1:${coordinator.port} to 127.0.0.1:${changed!.port}`)
      expect(shutOut?.todo).toContain('docs/scale.md')
    },
    600_000,
  )
})
