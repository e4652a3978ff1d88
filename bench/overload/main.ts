import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type CpuUsed, measureCpu } from '../cpu.ts'
import { BenchFailure } from '../failure.ts'
import { runLoad } from '../load.ts'
import { residentMegabytes } from '../memory.ts'
import { PostgresServer } from '../postgres.ts'
import { startService } from '../service.ts'
import { offer } from './offer.ts'
import { type Line, report } from './report.ts'
import { createTenants, type Tenant, together } from './tenants.ts'

const USAGE = `Finds out what the service can take, offers ten times as much, and looks at how it fares.

Usage: npm run overload -- [options]

  --seconds <n>      how long the overload lasts (300); everything else takes about a third of that, 100 s at most
  --connections <n>  connections that the overload comes over, a request in flight each (1000)
  --tenants <n>      tenants that the overload comes from (1)
  --times <n>        how many times what it can take is offered (10)
  --help             this text

DATABASE_URL names a server whose user may create databases; by default an embedded one is started. Ends with code 1
if a bound is broken.
`

/** Connections that measure what it can take, and that a tenant at full speed has. */
const FULL_SPEED = 64
const PROBES_PER_SECOND = 50
/** A prober is ahead of the load for a processor, where it may: its own waiting is no latency of the service. */
const PROBER = { connections: 64, priority: -10 }
const SETTLED_AFTER_MS = 5_000

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
      times: { type: 'string', default: '10' },
      help: { type: 'boolean', default: false },
    },
  })
  const number = (name: 'seconds' | 'connections' | 'tenants' | 'times') => {
    const value = Number(values[name])
    if (!(value >= 1)) throw new BenchFailure(`--${name} takes a number from 1.\n\n${USAGE}`)
    return value
  }
  return {
    help: values.help,
    seconds: number('seconds'),
    connections: Math.round(number('connections')),
    tenants: Math.round(number('tenants')),
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
    const service = await startService({ DATABASE_URL: database.url })
    steps.push(() => service.stop())
    const crowd = await createTenants(service, given.tenants)
    const [quiet] = await createTenants(service, 1)
    const lines = await measure({ ...given, service, database, crowd, quiet: quiet! })
    process.stdout.write(report(lines))
    if (lines.some(({ value, at_most }) => at_most !== undefined && !(value <= at_most))) process.exitCode = 1
  } finally {
    await end()
  }
}

interface Scene extends ReturnType<typeof options> {
  service: Awaited<ReturnType<typeof startService>>
  database: { url: string }
  crowd: Tenant[]
  quiet: Tenant
}

async function measure(scene: Scene): Promise<Line[]> {
  const { service, crowd, quiet, seconds, times, connections } = scene
  const short = Math.min(Math.max(seconds / 15, 2), 20)
  let rss_mb = 0
  const watching = setInterval(async () => {
    rss_mb = Math.max(rss_mb, await residentMegabytes(service.pid))
  }, 100)
  try {
    const loud = { ...service, token: crowd[0]!.token }
    const fullSpeed = (seconds: number) =>
      runLoad({
        services: [loud],
        connections: FULL_SPEED,
        seconds,
        requests: crowd[0]!.requests,
        status: 200,
      })
    const probe = (tenants: Tenant[], seconds: number) =>
      offer({ services: [service], ...together(tenants), per_second: PROBES_PER_SECOND, seconds, ...PROBER })

    say(`what it can take, ${short} s`)
    await fullSpeed(2)
    const { per_second: capacity } = await fullSpeed(short)

    say(`a quiet tenant alone, and beside one at full speed, ${short} s each, twice`)
    const alone = []
    const beside = []
    for (let round = 0; round < 2; round += 1) {
      alone.push((await probe([quiet], short)).answers['200']!)
      const [probed] = await Promise.all([probe([quiet], short), fullSpeed(short)])
      beside.push(probed.answers['200']!)
    }

    const usual = (seconds: number) =>
      Promise.all([
        offer({
          services: [service],
          ...together(crowd),
          per_second: capacity / 2,
          connections: 64,
          seconds,
        }),
        probe(crowd, seconds),
      ])
    say(`half of what it can take, ${short} s`)
    const before = await usual(short)

    say(`${times} times what it can take, ${seconds} s`)
    const stopMeasuring = await measureCpu({ services: [service], database: scene.database })
    // Two processes, so that it is not the one that offers which has too much to do.
    const half = {
      services: [service],
      ...together(crowd),
      per_second: (capacity * times) / 2,
      connections: Math.ceil(connections / 2),
      seconds,
    }
    const [one, other, probed, quietly] = await Promise.all([
      offer(half),
      offer(half),
      probe(crowd, seconds),
      probe([quiet], seconds),
    ])
    const used = await stopMeasuring()
    await new Promise((resolve) => setTimeout(resolve, SETTLED_AFTER_MS))
    say(`half of what it can take, ${short} s`)
    const after = await usual(short)
    return lines({
      capacity,
      alone,
      beside,
      before,
      after,
      crowd: [one, other],
      probed,
      quietly,
      used,
      rss_mb,
    })
  } finally {
    clearInterval(watching)
  }
}

type Offered = Awaited<ReturnType<typeof offer>>
type Answered = Offered['answers'][string]

interface Seen {
  capacity: number
  alone: Answered[]
  beside: Answered[]
  before: Offered[]
  after: Offered[]
  crowd: Offered[]
  /** The crowd's tenants, and the quiet one, as their probers saw the overload. */
  probed: Offered
  quietly: Offered
  used: CpuUsed | undefined
  rss_mb: number
}

function lines(seen: Seen): Line[] {
  const { capacity, crowd, probed, quietly, used } = seen
  const { seconds } = crowd[0]!
  const total = (count: (offered: Offered) => number) =>
    crowd.reduce((sum, offered) => sum + count(offered), 0)
  const answered = (accepted: boolean) =>
    total(({ answers }) =>
      Object.entries(answers).reduce(
        (sum, [status, { requests }]) => sum + ((status === '200') === accepted ? requests : 0),
        0,
      ),
    )
  const p99 = (answers: Answered[]) => Math.max(...answers.map(({ p99_ms }) => p99_ms))
  const refused = Object.entries(probed.answers).filter(([status]) => status === '503' || status === '429')
  const odd = [...crowd, probed, quietly].flatMap(({ answers }) =>
    Object.entries(answers).filter(([status]) => !['200', '429', '503'].includes(status)),
  )
  const rate = ([load]: Offered[]) => load!.answers['200']!.requests / load!.seconds
  const share = (us: number) => (100 * us) / used!.capacity_us
  return [
    { name: 'what it can take', unit: '/s', value: capacity },
    { name: 'due', unit: '/s', value: total(({ due }) => due) / seconds },
    { name: 'sent, as connections were free', unit: '/s', value: total(({ sent }) => sent) / seconds },
    { name: 'accepted', unit: '/s', value: answered(true) / seconds },
    { name: 'refused', unit: '/s', value: answered(false) / seconds },
    { name: 'p99 of what was accepted', unit: 'ms', value: p99([probed.answers['200']!]), at_most: 500 },
    {
      name: 'p99 until refused',
      unit: 'ms',
      value: refused.length > 0 ? p99(refused.map(([, answers]) => answers)) : 0,
      at_most: 100,
    },
    {
      name: `neither accepted nor refused${odd.length > 0 ? ` (${[...new Set(odd.map(([status]) => status))].join(', ')})` : ''}`,
      unit: '',
      value: odd.reduce((sum, [, { requests }]) => sum + requests, 0),
      at_most: 0,
    },
    { name: 'highest RSS of the service', unit: 'MB', value: seen.rss_mb, at_most: 400 },
    { name: 'quiet tenant alone, p99', unit: 'ms', value: p99(seen.alone) },
    { name: 'beside one at full speed, p99', unit: 'ms', value: p99(seen.beside) },
    { name: 'ratio of the two', unit: '×', value: p99(seen.beside) / p99(seen.alone), at_most: 2 },
    { name: 'quiet tenant in the overload, p99', unit: 'ms', value: p99([quietly.answers['200']!]) },
    {
      name: 'quiet tenant in the overload, refused',
      unit: '%',
      value: 100 * (1 - quietly.answers['200']!.requests / quietly.sent),
    },
    {
      name: 'half of what it can take: p99 before',
      unit: 'ms',
      value: p99([seen.before[1]!.answers['200']!]),
    },
    { name: 'p99 5 s after', unit: 'ms', value: p99([seen.after[1]!.answers['200']!]) },
    { name: 'accepted before', unit: '/s', value: rate(seen.before) },
    { name: 'accepted 5 s after', unit: '/s', value: rate(seen.after) },
    { name: 'accepted before ÷ after', unit: '×', value: rate(seen.before) / rate(seen.after), at_most: 1.1 },
    ...(used
      ? [
          { name: 'of all processors in the overload: service', unit: '%', value: share(used.service_us) },
          { name: '… PostgreSQL', unit: '%', value: share(used.postgres_us) },
          { name: '… the load', unit: '%', value: share(total(({ cpu_us }) => cpu_us)) },
          {
            name: '… others',
            unit: '%',
            value: share(
              used.machine_us - used.service_us - used.postgres_us - total(({ cpu_us }) => cpu_us),
            ),
          },
        ]
      : []),
  ]
}

function say(sentence: string): void {
  process.stderr.write(`overload: ${sentence}\n`)
}
