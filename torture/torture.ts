import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ANNALS } from '../lab/launch_service.ts'
import { type Random, seededRandom } from '../lab/random.ts'
import { brokenBounds, RSS_MB_MAX } from './bounds.ts'
import { compare, type StoredSession } from './check/compare.ts'
import { Consumption } from './check/consumption.ts'
import { editFigures, problemsOfEdits } from './check/edits.ts'
import { Journal } from './check/journal.ts'
import { Learning } from './check/learning.ts'
import { readDatabase } from './check/read_database.ts'
import { Crowd } from './clients/crowd.ts'
import { Traffic } from './clients/http.ts'
import { Probe } from './clients/probe.ts'
import { type Lessons, newEdits, type Surroundings } from './clients/surroundings.ts'
import { type Options, readOptions } from './options.ts'
import { passed, type Result, report } from './report.ts'
import { runRounds } from './rounds.ts'
import type { ServiceNode } from './world/node.ts'
import { newSession, newSpace, newTenant, orderByActivity, startWorld, type World } from './world/world.ts'

/**
 * Tests the promise that everything acknowledged is there, once, in order: two nodes and a PostgreSQL of its own, 64
 * clients that record what they were told, faults at random moments, and at the end a comparison of all records with
 * the database. `--help` lists the options; docs/reliability.md describes the rest. Ctrl-C ends the faults, and
 * compares.
 */

const SETTLE_MS_MAX = 60_000
const WARM_UP_MS = 2_000
/** A lease of a killed node, and then the poll of another. */
const CONSUME_MS_MAX = 90_000
/** The same, and pauses after a model that was away. */
const LEARN_MS_MAX = 180_000

const options = readOptions(process.argv.slice(2))
if (options) process.exitCode = (await torture(options)) ? 0 : 1

async function torture(options: Options): Promise<boolean> {
  const started_at = performance.now()
  const random = seededRandom(options.seed)
  say(`seed ${options.seed}`)
  const world = await startWorld(random, options.cluster, options.bin)
  let interrupted = false
  process.on('SIGINT', () => {
    if (interrupted) void world.end(true).finally(() => process.exit(130))
    interrupted = true
  })
  let held = false
  try {
    const result = await run(world, { ...options, isInterrupted: () => interrupted }, started_at)
    process.stdout.write(report(result))
    held = passed(result)
    return held
  } finally {
    await world.end(!held || options.keepLogs)
    if (!held || options.keepLogs) say(`The logs are in ${world.work}`)
  }
}

async function run(
  world: World,
  options: Options & { isInterrupted: () => boolean },
  started_at: number,
): Promise<Result> {
  const random = seededRandom(options.seed).fork('run')
  const journal = new Journal()
  const traffic = new Traffic()
  let running = true
  const { nodes, sessions } = world
  const consumed = await newTenant(world, 'torture-2', true)
  await orderByActivity(world, consumed)
  const consumption = new Consumption(world.postgres, consumed.project_id)
  const lessons = await newLessons(world)
  const learning = new Learning(world.postgres, lessons)
  const tenants = [await newTenant(world, 'torture-1'), consumed]
  const edits = newEdits(await newTenant(world, 'torture-edits'))
  const around: Surroundings = {
    nodes,
    tenants,
    consumed,
    lessons,
    edits,
    runs: { tenant: await newTenant(world, 'torture-runs'), sessions: [] },
    sessions,
    journal,
    traffic,
    isRunning: () => running,
  }
  const probes = await newProbes(world, around, random)
  const crowd = new Crowd(around, random)
  crowd.start()
  await sleep(WARM_UP_MS)
  const rounds = await runRounds(world, probes, { ...options, started_at }, random.fork('faults'), say, () =>
    consumption.look(),
  )
  running = false
  const problems = [
    ...rounds.problems,
    ...(options.isFull && !options.isInterrupted() ? brokenBounds(rounds) : []),
  ]
  if (!(await settled(crowd))) problems.push('a write was not settled a minute after the last fault')
  for (const probe of probes) probe.stop()
  const caughtUp = [
    consumption.problems(CONSUME_MS_MAX),
    learning.problems(LEARN_MS_MAX),
    problemsOfEdits(world, edits, CONSUME_MS_MAX),
  ]
  problems.push(...(await Promise.all(caughtUp)).flat())
  const stored = await readWhenTailsAreThere(world, crowd, problems)
  crowd.close()
  if (!(await verify(world))) problems.push('annals verify found something')
  problems.push(...nodes.flatMap(problemsOfNode))
  for (const [what, count] of traffic.unexpected) problems.push(`${count} times ${what}`)
  return {
    ...sums(journal, crowd),
    seed: options.seed,
    took_ms: performance.now() - started_at,
    rounds,
    traffic,
    consumed_ms: consumption.caught_up_ms,
    learnt: learning.figures(),
    edited: editFigures(journal, edits, world),
    findings: compare(journal, stored),
    problems,
    rss_max_mb: Object.fromEntries(nodes.map(({ name, rss_max_mb }) => [name, rss_max_mb])),
  }
}

function problemsOfNode({ name, fallen, rss_max_mb }: ServiceNode): string[] {
  return [
    ...(fallen > 0 ? [`${name} ended by itself ${fallen} times`] : []),
    ...(rss_max_mb > RSS_MB_MAX ? [`${name} took ${rss_max_mb} MB`] : []),
  ]
}

/** One for each node, with a tenant and a session of its own. */
async function newProbes(world: World, around: Surroundings, random: Random): Promise<Probe[]> {
  const probes: Probe[] = []
  for (const node of world.nodes) {
    const marker = `probe-${node.name}`
    const tenant = await newTenant(world, marker)
    const session = await newSession(world, tenant, marker)
    const { project_id } = tenant
    around.journal.sessions.push({ marker, project_id, fate: 'acknowledged', session_id: session.session_id })
    probes.push(new Probe(node, session, around, random.fork(marker)))
  }
  return probes
}

/** A tenant with two learning spaces, one for each mode, which share its sessions. */
async function newLessons(world: World): Promise<Lessons> {
  const tenant = await newTenant(world, 'torture-learning')
  const space_ids = [await newSpace(world, tenant, 'suggest'), await newSpace(world, tenant, 'auto')]
  return { tenant, space_ids, model: world.model, sessions: [] }
}

/** The service's own proof of what must be true of a database, beside the comparison with the journals. */
async function verify({ postgres, objects }: World): Promise<boolean> {
  const { PATH = '', HOME = '/' } = process.env
  const env = { PATH, HOME, NO_COLOR: '1', DATABASE_URL: postgres.url(), ...objects?.env }
  say('\nannals verify')
  const child = spawn(process.execPath, [ANNALS, 'verify'], { env, stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

async function settled(crowd: Crowd): Promise<boolean> {
  return Promise.race([crowd.finished().then(() => true), sleep(SETTLE_MS_MAX, false, { ref: false })])
}

/** The database as it is when nothing is written any more, and every tail has been shown its end. */
async function readWhenTailsAreThere(
  { postgres }: World,
  { tailers }: Crowd,
  problems: string[],
): Promise<StoredSession[]> {
  const stored = await readDatabase(postgres.superuserUrl())
  const heads = new Map(stored.map(({ session_id, entries }) => [session_id, entries.length]))
  const behind = () =>
    tailers.filter(({ session, last_seq }) => session && last_seq < heads.get(session.session_id)!)
  for (let waited = 0; behind().length > 0 && waited < SETTLE_MS_MAX; waited += 100) await sleep(100)
  if (behind().length > 0) problems.push(`${behind().length} tails were not shown the end of their logs`)
  return stored
}

function sums(journal: Journal, { tailers }: Crowd) {
  const withFate = (fate: string) => journal.appends.filter((append) => append.fate === fate)
  const acknowledged = withFate('acknowledged')
  return {
    acknowledged: {
      appends: acknowledged.length,
      entries: acknowledged.reduce((sum, { markers }) => sum + markers.length, 0),
      sessions: journal.sessions.filter(({ fate }) => fate === 'acknowledged').length,
    },
    refused: withFate('refused').length,
    in_doubt: withFate('in_doubt').length,
    tailed: {
      entries: tailers.reduce((sum, { shown }) => sum + shown, 0),
      connections: tailers.reduce((sum, { connections }) => sum + connections, 0),
    },
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
