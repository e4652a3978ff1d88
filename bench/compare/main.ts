import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ANNALS } from '../../lab/launch_service.ts'
import { median } from '../../lab/statistics.ts'
import { BenchFailure } from '../failure.ts'
import { type LoadCpu, type LoadResult, runLoad } from '../load.ts'
import { residentMegabytes } from '../memory.ts'
import { type BenchDatabase, PostgresServer } from '../postgres.ts'
import { interleave, ratios } from '../rounds.ts'
import { type Service, startService } from '../service.ts'
import { type Load, prepareLoads } from './loads.ts'

const USAGE = `Measures this build beside another one, in turns of a second, on the same PostgreSQL.

Usage: npm run bench:compare -- --base <folder> [options] [load …]
       npm run bench:compare -- --cluster <url> [options] [load …]

  --base <folder>    another clone of this repository, built (npm ci)
  --cluster <url>    instead: this build on a database of a Citus cluster, beside itself on the other PostgreSQL
  --starts <n>       starts of each build, each with a database of its own (8)
  --turns <n>        turns of each build for each load after a start (6)
  --seconds <n>      length of a turn (1)
  --at-least <n>     ends with code 1 if a median ratio of throughput is lower (0.98)
  --help             this text

A load is named by a part of its name; by default all run. A ratio is this build ÷ the other: of requests a second
(higher is better) and of CPU time a request, PostgreSQL's included (lower is better, and steadier on a machine that
others use too). Each is the median over all starts of the median over the turns after one start: a process stays up to
a tenth faster or slower than the next one of the same build, however long it is measured.
`

/** A build under test, with a database of its own. */
interface Build {
  service: Service
  database: Pick<BenchDatabase, 'url'>
  loads: Record<string, Load>
}

/** What both builds did under one load after a start. */
interface Turns {
  ours: LoadResult[]
  other: LoadResult[]
}

/** By name of the load, and the memory of the processes after all of them. */
interface Start {
  loads: Map<string, Turns>
  own_mb: number
  other_mb: number
}

await main().catch((error: unknown) => {
  process.stderr.write(`compare: ${error instanceof BenchFailure ? error.message : (error as Error).stack}\n`)
  process.exit(2)
})

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      base: { type: 'string' },
      cluster: { type: 'string' },
      starts: { type: 'string', default: '8' },
      turns: { type: 'string', default: '6' },
      seconds: { type: 'string', default: '1' },
      'at-least': { type: 'string', default: '0.98' },
      help: { type: 'boolean', default: false },
    },
  })
  const [starts, turns] = [values.starts, values.turns].map((value) => Math.round(Number(value)))
  const [seconds, at_least] = [values.seconds, values['at-least']].map(Number)
  if (!(starts! >= 1 && turns! >= 1 && seconds! > 0 && at_least! >= 0))
    throw new BenchFailure(`--starts, --turns, --seconds and --at-least take numbers.\n\n${USAGE}`)
  return {
    ...values,
    starts: starts!,
    turns: turns!,
    seconds: seconds!,
    at_least: at_least!,
    wanted: positionals,
  }
}

async function main(): Promise<void> {
  const given = options()
  if (given.help) {
    process.stdout.write(USAGE)
    return
  }
  if (!given.base && !given.cluster) throw new BenchFailure(`Name the other build with --base.\n\n${USAGE}`)
  const directory = await mkdtemp(join(tmpdir(), 'annals-compare-'))
  const steps: Array<() => unknown> = [() => rm(directory, { recursive: true, force: true })]
  const end = async () => {
    for (const step of steps.splice(0).reverse()) await step()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().finally(() => process.exit(130)))
  try {
    const server = await PostgresServer.start(process.env.DATABASE_URL || undefined, directory)
    steps.push(() => server.stop())
    const starts: Start[] = []
    for (let start = 0; start < given.starts; start++) {
      process.stderr.write(`compare: start ${start + 1} of ${given.starts}\n`)
      starts.push(await measureStart(server, given, steps, start % 2 === 1))
    }
    print(starts, given.at_least)
  } finally {
    await end()
  }
}

/** Starts both builds, measures them in turns, and stops them. */
async function measureStart(
  server: PostgresServer,
  given: ReturnType<typeof options>,
  steps: Array<() => unknown>,
  other_first: boolean,
): Promise<Start> {
  const kept = steps.length
  const other_bin = given.base ? resolve(given.base, 'packages/server/bin/annals.js') : ANNALS
  const openOurs = () => openBuild(server, ANNALS, steps, given.cluster)
  const openOther = () => openBuild(server, other_bin, steps)
  const first = await (other_first ? openOther : openOurs)()
  const second = await (other_first ? openOurs : openOther)()
  const [ours, other] = other_first ? [second, first] : [first, second]
  const start = await compare(ours, other, given)
  for (const step of steps.splice(kept).reverse()) await step()
  return start
}

/** `url` names a database that is there already; by default it gets a new one. */
async function openBuild(
  server: PostgresServer,
  bin: string,
  steps: Array<() => unknown>,
  url?: string,
): Promise<Build> {
  const database = url ? { url } : await server.createDatabase(bin)
  if ('drop' in database) steps.push(() => database.drop())
  const service = await startService({ DATABASE_URL: database.url }, bin)
  steps.push(() => service.stop())
  return { service, database, loads: await prepareLoads(service) }
}

async function compare(ours: Build, other: Build, given: ReturnType<typeof options>): Promise<Start> {
  const { turns, seconds, wanted } = given
  const names = Object.keys(ours.loads).filter(
    (name) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
  )
  if (names.length === 0)
    throw new BenchFailure(`No load has such a name: ${Object.keys(ours.loads).join('; ')}`)
  const loads = new Map<string, Turns>()
  for (const name of names) {
    const run = ({ service, database, loads }: Build, length: number) =>
      runLoad({ services: [service], ...loads[name]!, seconds: length, cpu_of: { database } })
    for (const build of [ours, other]) await run(build, Math.min(seconds * 2, 2))
    const runs = await interleave(
      turns,
      { ours: () => run(ours, seconds), other: () => run(other, seconds) },
      () => {},
    )
    loads.set(name, { ours: runs.ours!, other: runs.other! })
  }
  const [own_mb, other_mb] = await Promise.all(
    [ours, other].map(({ service }) => residentMegabytes(service.pid)),
  )
  return { loads, own_mb: own_mb!, other_mb: other_mb! }
}

function print(starts: Start[], at_least: number): void {
  process.stdout.write(
    `${'load'.padEnd(40)}  ratio  lowest to highest      CPU  service      PG  this build /s\n`,
  )
  for (const name of starts[0]!.loads.keys()) {
    const row = rowOf(
      name,
      starts.map(({ loads }) => loads.get(name)!),
    )
    process.stdout.write(`${row.text}\n`)
    if (row.ratio < at_least) process.exitCode = 1
  }
  const [own_mb, other_mb] = [starts.map((one) => one.own_mb), starts.map((one) => one.other_mb)].map(median)
  process.stdout.write(`memory at the end: ${own_mb} MB, the other build ${other_mb} MB\n`)
}

function rowOf(name: string, starts: Turns[]): { text: string; ratio: number } {
  const rates = (runs: LoadResult[]) => runs.map(({ per_second }) => per_second)
  const of_rates = starts.map(({ ours, other }) => median(ratios(rates(ours), rates(other))))
  const of_cpu = (us: (cpu: LoadCpu) => number) => {
    const used = (runs: LoadResult[]) => runs.flatMap(({ cpu }) => (cpu ? us(cpu) : []))
    const found = starts
      .map(({ ours, other }) => ratios(used(ours), used(other)))
      .filter(({ length }) => length > 0)
    return (found.length > 0 ? median(found.map(median)).toFixed(2) : '-').padStart(7)
  }
  const ratio = median(of_rates)
  const [lowest, highest] = [Math.min(...of_rates), Math.max(...of_rates)].map((value) => value.toFixed(2))
  const columns = [
    name.padEnd(40),
    ratio.toFixed(2).padStart(5),
    `${lowest} to ${highest}`.padStart(18),
    of_cpu(({ service_us, postgres_us }) => service_us + postgres_us),
    of_cpu(({ service_us }) => service_us),
    of_cpu(({ postgres_us }) => postgres_us),
    Math.round(median(starts.flatMap(({ ours }) => rates(ours))))
      .toString()
      .padStart(10),
  ]
  return { text: columns.join('  '), ratio }
}
