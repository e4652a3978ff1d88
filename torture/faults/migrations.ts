import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { ANNALS } from '../../lab/launch_service.ts'
import type { Random } from '../../lab/random.ts'
import { fingerprint, type OwnWorld } from '../world/world.ts'
import { type Fault, lull } from './fault.ts'

/** Migrations of a fresh database, beside the load on the other one: two at once, and one killed in the middle. */
export const MIGRATION_FAULTS: Fault[] = [
  {
    kind: 'migrated by two at once',
    times: 10,
    strike: (world, random) =>
      onFreshDatabase(world, random, async (url) => {
        const ends = await Promise.all([ended(migrate(url)), ended(migrate(url))])
        return ends.find((code) => code !== 0)
      }),
  },
  {
    kind: 'migration killed',
    kills: 1,
    times: 10,
    strike: (world, random) =>
      onFreshDatabase(world, random, async (url, name) => {
        const child = migrate(url)
        const end = ended(child)
        while (child.exitCode === null && !(await isMigrating(world, name)));
        await lull(random, 0, 40)
        child.kill('SIGKILL')
        await end
        return ended(migrate(url))
      }),
  },
]

let count = 0

async function onFreshDatabase(
  world: OwnWorld,
  random: Random,
  work: (url: string, name: string) => Promise<number | undefined>,
) {
  const name = `migrated_${count++}`
  await world.postgres.ask(`CREATE DATABASE ${name} OWNER annals`)
  await lull(random, 0, 100)
  const code = await work(world.postgres.url(name), name)
  const same = (await fingerprint(world.postgres.superuserUrl(name))) === world.schema
  await world.postgres.ask(`DROP DATABASE ${name} WITH (FORCE)`)
  const problem = code ? `annals migrate ended with ${code}` : same ? undefined : 'the schema is another one'
  return { returned_at: performance.now(), nodes: world.nodes, ...(problem && { problem }) }
}

function migrate(url: string): ChildProcess {
  const { PATH = '', HOME = '/' } = process.env
  const env = { PATH, HOME, DATABASE_URL: url }
  return spawn(process.execPath, [ANNALS, 'migrate'], { env, stdio: 'ignore' })
}

async function ended(child: ChildProcess): Promise<number | undefined> {
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? undefined
}

async function isMigrating({ postgres }: OwnWorld, name: string): Promise<boolean> {
  const rows = await postgres.ask(
    'SELECT FROM pg_stat_activity WHERE datname = $1 AND xact_start IS NOT NULL',
    [name],
  )
  return rows.length > 0
}
