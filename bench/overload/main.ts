import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { measureCpu } from '../cpu.ts'
import { BenchFailure } from '../failure.ts'
import { runLoad } from '../load.ts'
import { residentMegabytes } from '../memory.ts'
import { PostgresServer } from '../postgres.ts'
import { startService } from '../service.ts'
import { lines } from './figures.ts'
import { offer } from './offer.ts'
import { type Line, report } from './report.ts'
import { createTenants, type Tenant, together } from './tenants.ts'

const USAGE = `Finds out what the service can take, offers ten times as much, and looks at how it fares.

Usage: npm run overload -- [options]

  --seconds <n>      how long the overload lasts (300); everything else takes about a third of that, 100 s at most
  --connections <n>  connections that the overload comes over, a request in flight each (1000)
  --tenants <n>      tenants that the overload comes from (1)
  --idle <n>         connections that are open besides and hardly used, before the overload (10000); both sides need as
                     many files (ulimit -n)
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
/** How often a connection that is hardly used is used: before the service would close it. */
const IDLE_S = 60
/** Less than the 15 s after which the service closes a connection that has not sent anything yet. */
const HELD_S_MAX = 12
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
  const { service, crowd, quiet, seconds, times, idle, connections } = scene
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

    const held_s = Math.min(short, HELD_S_MAX)
    say(`${idle} idle connections, ${held_s} s`)
    const hardly = { services: [service], ...together(crowd), per_second: idle / IDLE_S, connections: idle }
    const [held, beyond] = await Promise.all([
      offer({ ...hardly, seconds: held_s }),
      // Once they are open.
      sleep((held_s / 2) * 1_000).then(() => probe([quiet], held_s / 3)),
    ])
    const idle_mb = await residentMegabytes(service.pid)

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
    const waitedBefore = await waitedSeconds(service.pid)
    const [one, other, probed, quietly] = await Promise.all([
      offer(half),
      offer(half),
      probe(crowd, seconds),
      probe([quiet], seconds),
    ])
    const used = await stopMeasuring()
    const waited = ((await waitedSeconds(service.pid)) - waitedBefore) / seconds
    await sleep(SETTLED_AFTER_MS)
    say(`half of what it can take, ${short} s`)
    const after = await usual(short)
    return lines({
      idle,
      held,
      beyond,
      idle_mb,
      waited,
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

/** How long the first thread of a process has waited for a processor; 0 where there is no /proc. */
async function waitedSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => '')
  return Number(text.split(' ')[1] ?? 0) / 1e9
}

function say(sentence: string): void {
  process.stderr.write(`overload: ${sentence}\n`)
}
