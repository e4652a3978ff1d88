import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Options, openContext } from './context.ts'
import { measureCpu } from './cpu.ts'
import { writeDocs } from './docs.ts'
import { BenchFailure } from './failure.ts'
import type { Part } from './part.ts'
import { access } from './parts/access.ts'
import { append } from './parts/append.ts'
import { atomic } from './parts/atomic.ts'
import { batch } from './parts/batch.ts'
import { blobs } from './parts/blobs.ts'
import { byHand } from './parts/by_hand.ts'
import { foreignIds } from './parts/foreign_ids.ts'
import { frameworks } from './parts/frameworks.ts'
import { growth } from './parts/growth.ts'
import { importing } from './parts/import.ts'
import { indexes } from './parts/indexes.ts'
import { ingest } from './parts/ingest.ts'
import { latency } from './parts/latency.ts'
import { learning } from './parts/learning.ts'
import { lists } from './parts/lists.ts'
import { memory } from './parts/memory.ts'
import { reads } from './parts/reads.ts'
import { recall } from './parts/recall.ts'
import { redaction } from './parts/redaction.ts'
import { runs } from './parts/runs.ts'
import { search } from './parts/search.ts'
import { start } from './parts/start.ts'
import { tail } from './parts/tail.ts'
import { timeline } from './parts/timeline.ts'
import { PostgresServer } from './postgres.ts'
import { describeRun, judge, type PartResult, type Results } from './results.ts'
import { ROOT } from './root.ts'
import { describeMachine, textTable } from './table.ts'

/** In the order in which they run and stand in the table. */
const PARTS: Part[] = [
  append,
  batch,
  atomic,
  blobs,
  frameworks,
  latency,
  byHand,
  lists,
  timeline,
  tail,
  memory,
  reads,
  start,
  growth,
  indexes,
  foreignIds,
  learning,
  search,
  recall,
  runs,
  ingest,
  importing,
  access,
  redaction,
]

const USAGE = `Measures Annals on real PostgreSQL, over real HTTP, and prints each figure beside its yardstick.

Usage: npm run bench -- [options] [part …]

${PARTS.map(({ name, describe }) => `  ${name.padEnd(17)}${describe}`).join('\n')}

  --quick          little data and short runs, to see that everything works; several minutes
  --full           also what takes long and much of the disk: five and thirty million entries
  --wrk            measure by-hand with wrk instead of the generator here
  --rounds <n>     rounds of each measurement, of which the table shows the median (3)
  --seconds <n>    length of each measured run (10)
  --out <file>     where the results go as JSON (bench/results.json)
  --write-docs     also write the table and the chart in docs/; parts that did not run stay as they are
  --from <file>    run nothing, show the results of an earlier run (with --write-docs: write them)
  --help           this text

TEST_DATABASE_URL, or else DATABASE_URL, names a server whose user may create databases, or a fresh database of a
Citus cluster, which all parts then share; by default an embedded server is started. Ends with code 1 if a part could
not run; a figure that misses its bound says so in the table.
`

await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof BenchFailure ? error.message : (error as Error).stack}\n`)
  process.exit(1)
})

async function main(): Promise<void> {
  const { values, positionals } = readArguments()
  if (values.help) {
    process.stdout.write(USAGE)
    return
  }
  if (values.quick && values['write-docs']) throw new BenchFailure('--quick has no figures for the docs.')
  const chosen = positionals.length === 0 ? PARTS : positionals.map(partNamed)
  const results = values.from
    ? JSON.parse(await readFile(values.from, 'utf8'))
    : await measure(chosen, values)
  process.stdout.write(`\n${describeMachine(results)}\n\n${textTable(results)}`)
  if (!values.from) await writeFile(values.out, `${JSON.stringify(results, null, 2)}\n`)
  if (values['write-docs'])
    await writeDocs(
      results,
      PARTS.map(({ name }) => name),
    )
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        full: { type: 'boolean', default: false },
        wrk: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        out: { type: 'string', default: `${ROOT}bench/results.json` },
        'write-docs': { type: 'boolean', default: false },
        from: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new BenchFailure(`${(error as Error).message}\n\n${USAGE}`)
  }
}

function partNamed(name: string): Part {
  const part = PARTS.find((candidate) => candidate.name === name)
  if (!part)
    throw new BenchFailure(`There is no part ${name}: name some of ${PARTS.map((p) => p.name).join(', ')}.`)
  return part
}

function positive(text: string | undefined, name: string, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!(value > 0)) throw new BenchFailure(`--${name} takes a number above 0.`)
  return value
}

async function measure(parts: Part[], values: ReturnType<typeof readArguments>['values']): Promise<Results> {
  const { quick, full, wrk } = values
  const lengths = {
    quick,
    full,
    wrk,
    rounds: Math.round(positive(values.rounds, 'rounds', quick ? 1 : 3)),
    seconds: positive(values.seconds, 'seconds', quick ? 0.1 : 10),
  }
  const directory = await mkdtemp(join(tmpdir(), 'annals-bench-'))
  const options: Options = { ...lengths, directory }
  let close: (() => Promise<void>) | undefined
  let interrupted: Promise<void> | undefined
  const given = process.env.TEST_DATABASE_URL || process.env.DATABASE_URL
  const server = await PostgresServer.start(given || undefined, directory)
  const endAll = async () => {
    await close?.()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= endAll()
    return ended
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupted ??= end().finally(() => process.exit(130))
    })
  }
  try {
    const results: Results = { ...(await describeRun(server)), parts: {} }
    for (const part of parts) {
      const opened = openContext(part.name, options, server)
      close = opened.close
      try {
        results.parts[part.name] = await runPart(part, opened, options, server)
      } catch (error) {
        // What was taken away from it is not its failure, and half a run is no result.
        if (interrupted) await interrupted
        // The others still run: what they measured in many minutes must not go with this one.
        process.exitCode = 1
        opened.ctx.say(`FAILED: ${error instanceof BenchFailure ? error.message : (error as Error).stack}`)
      }
    }
    return results
  } finally {
    await end()
  }
}

async function runPart(
  part: Part,
  { ctx, details, close }: ReturnType<typeof openContext>,
  { quick, full, rounds, seconds }: Options,
  server: PostgresServer,
): Promise<PartResult> {
  const began = performance.now()
  const ran_at = new Date().toISOString()
  const stopMeasuring = await measureCpu({ services: [process], database: server })
  try {
    const figures = (await part.run(ctx)).map((figure) => judge(figure, quick))
    const took_s = Math.round((performance.now() - began) / 1000)
    const used = await stopMeasuring()
    const others_share = used && (used.machine_us - used.service_us - used.postgres_us) / used.capacity_us
    ctx.say(`took ${took_s} s`)
    return {
      ran_at,
      took_s,
      ...(used && { others_share: Math.max(others_share!, 0) }),
      options: { quick, full, rounds, seconds },
      figures,
      details,
    }
  } finally {
    await close()
  }
}
