import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BenchFailure } from '../failure.ts'
import { PostgresServer } from '../postgres.ts'
import { startService } from '../service.ts'
import { bareInserts } from './bare_inserts.ts'
import { lines } from './figures.ts'
import { measure, PROBES_PER_SECOND } from './measure.ts'
import { report } from './report.ts'
import { createTenants } from './tenants.ts'

const USAGE = `Finds out what the service can take, offers ten times as much, and looks at how it fares.

Usage: npm run overload -- [options]

  --seconds <n>      how long the overload lasts (300); everything else takes three minutes at most
  --connections <n>  connections that the overload comes over, a request in flight each (1000)
  --tenants <n>      tenants that the overload comes from (1)
  --idle <n>         connections that are open besides and hardly used, before the overload (10000); both sides need as
                     many files (ulimit -n)
  --times <n>        how many times what it can take is offered (10)
  --help             this text

DATABASE_URL names a server whose user may create databases; by default an embedded one is started. Ends with code 1
if a bound is broken.
`

await main().catch((error: unknown) => {
  process.stderr.write(
    `overload: ${error instanceof BenchFailure ? error.message : (error as Error).stack}\n`,
  )
  process.exit(2)
})

function options() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '300' },
      connections: { type: 'string', default: '1000' },
      tenants: { type: 'string', default: '1' },
      idle: { type: 'string', default: '10000' },
      times: { type: 'string', default: '10' },
      help: { type: 'boolean', default: false },
    },
  })
  const number = (name: 'seconds' | 'connections' | 'tenants' | 'idle' | 'times') => {
    const value = Number(values[name])
    if (!(value >= 1)) throw new BenchFailure(`--${name} takes a number from 1.\n\n${USAGE}`)
    return value
  }
  return {
    help: values.help,
    seconds: number('seconds'),
    connections: Math.round(number('connections')),
    tenants: Math.round(number('tenants')),
    idle: Math.round(number('idle')),
    times: number('times'),
  }
}

async function main(): Promise<void> {
  const given = options()
  if (given.help) {
    process.stdout.write(USAGE)
    return
  }
  const directory = await mkdtemp(join(tmpdir(), 'annals-overload-'))
  const steps: Array<() => unknown> = [() => rm(directory, { recursive: true, force: true })]
  const end = async () => {
    for (const step of steps.splice(0).reverse()) await step()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().finally(() => process.exit(130)))
  try {
    const server = await PostgresServer.start(process.env.DATABASE_URL || undefined, directory)
    steps.push(() => server.stop())
    const database = await server.createDatabase()
    steps.push(() => database.drop())
    const apart = await server.createDatabase()
    steps.push(() => apart.drop())
    const bare = await bareInserts(apart, directory, PROBES_PER_SECOND)
    const service = await startService({ DATABASE_URL: database.url })
    steps.push(() => service.stop())
    const crowd = await createTenants(service, given.tenants)
    const [quiet] = await createTenants(service, 1)
    const figures = lines(await measure({ ...given, service, database, crowd, quiet: quiet!, bare }))
    process.stdout.write(report(figures))
    if (figures.some(({ value, at_most }) => at_most !== undefined && !(value <= at_most)))
      process.exitCode = 1
  } finally {
    await end()
  }
}
