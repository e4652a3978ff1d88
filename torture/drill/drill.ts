import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Launched, launchService } from '../../lab/launch_service.ts'
import { copyEngine } from '../world/engine.ts'
import { Load } from './load.ts'
import { type Member, startPair } from './pair.ts'
import { Pooler } from './pooler.ts'

/**
 * The operator's drill: a primary and a standby on loopback, two nodes whose DATABASE_URL names both, and load. It switches
 * over, kills and freezes primaries, makes the role read-only, and takes the standby away, and with a PgBouncer before
 * them also pauses, restarts and starves that. `--help` says more;
 * docs/high-availability.md says what it showed.
 */

/** How long nodes may take to write again once there is a primary that can be written. */
const BACK_MS_MAX = 10_000
/** How long a node may call itself ready while it writes nothing, and how long a write may take: the bound of a commit, and a second. */
const BOUND_MS = 6_000

const USAGE = `npm run drill -- [options]

  --bin <folder>   PostgreSQL's programs, such as /usr/lib/postgresql/15/bin; without it, those that npm installed
  --steps <a,b>    only steps whose names contain one of these
  --pgbouncer      the nodes reach the primary through a PgBouncer, which the operator switches over
  --keep-logs      leaves the logs where they are
`

interface Scene {
  primary: Member
  standby: Member
  pooler: Pooler | undefined
}

interface Step {
  name: string
  replication: 'synchronous' | 'asynchronous'
  /** What is done under load. Gives when writes can succeed again. */
  strike(scene: Scene): Promise<number>
}

const STEPS: Step[] = [
  { name: 'switchover', replication: 'synchronous', strike: switchOver },
  { name: 'primary killed', replication: 'synchronous', strike: (scene) => failOver(scene, 'killed') },
  { name: 'primary frozen', replication: 'synchronous', strike: (scene) => failOver(scene, 'frozen') },
  { name: 'primary killed, standby 1 s behind', replication: 'asynchronous', strike: failOverLate },
  { name: 'role read-only for 5 s', replication: 'synchronous', strike: makeReadOnly },
  { name: 'standby away for 15 s', replication: 'synchronous', strike: takeStandbyAway },
]
const POOLER_STEPS: Step[] = [
  { name: 'PgBouncer paused for 5 s', replication: 'synchronous', strike: pausePooler },
  { name: 'PgBouncer killed for 2 s', replication: 'synchronous', strike: killPooler },
  { name: 'one connection for 5 s', replication: 'synchronous', strike: starve },
]

const { values } = parseArgs({
  options: {
    bin: { type: 'string' },
    steps: { type: 'string' },
    pgbouncer: { type: 'boolean', default: false },
    'keep-logs': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
// So that what it has started ends with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
if (values.help) process.stdout.write(USAGE)
else process.exit((await drill()) ? 0 : 1)

async function drill(): Promise<boolean> {
  const work = await mkdtemp(join(tmpdir(), 'annals-drill-'))
  await chmod(work, 0o755)
  const words = values.steps?.split(',')
  const steps = [...STEPS, ...(values.pgbouncer ? POOLER_STEPS : [])].filter(
    ({ name }) => !words || words.some((word) => name.includes(word.trim())),
  )
  let held = true
  let scene: Scene | undefined
  try {
    const bin = values.bin ?? (await copyEngine(work))
    const [primary, standby] = await startPair(bin, join(work, 'servers'))
    const pooler = values.pgbouncer ? await Pooler.start(join(work, 'pgbouncer'), primary.port) : undefined
    scene = { primary, standby, pooler }
    const [version] = await primary.ask<{ server_version: string }>('SHOW server_version')
    say(`PostgreSQL ${version!.server_version}`)
    for (const step of steps) held = (await run(step, scene, work)) && held
    say(held ? 'All bounds were kept.' : 'FAILED')
  } catch (error) {
    held = false
    say((error as Error).stack ?? String(error))
  } finally {
    await Promise.all([scene?.primary.stop('SIGKILL'), scene?.standby.stop('SIGKILL'), scene?.pooler?.stop()])
    if (held && !values['keep-logs']) await rm(work, { recursive: true, force: true })
    else say(`The logs are in ${work}`)
  }
  return held
}

async function run(step: Step, scene: Scene, work: string): Promise<boolean> {
  await scene.primary.set('synchronous_standby_names', step.replication === 'synchronous' ? 'standby' : '')
  const key = randomBytes(24).toString('hex')
  const nodes = await startNodes(scene, key, work)
  const load = new Load(
    nodes.map(({ url }) => url),
    key,
  )
  await sleep(3_000)
  const returned_at = await step.strike(scene)
  await sleep(4_000)
  const isBack = await waitForWrites(load, returned_at)
  await load.end()
  await Promise.all(nodes.map((node) => stopNode(node)))
  const problems = await judge(step, scene.primary, load, isBack ? load.writesAfter(returned_at) : undefined)
  for (const problem of problems) say(`  ! ${problem}`)
  await scene.standby.follow(scene.primary)
  return problems.length === 0
}

async function waitForWrites(load: Load, moment: number): Promise<boolean> {
  const deadline = performance.now() + 3 * BACK_MS_MAX
  while (!Number.isFinite(load.writesAfter(moment)) && performance.now() < deadline) await sleep(100)
  return Number.isFinite(load.writesAfter(moment))
}

/** Compares what was answered with what the primary has, and prints the figures. Returns what broke a bound. */
async function judge({ name, replication }: Step, primary: Member, load: Load, back_ms: number | undefined) {
  const rows = await primary.ask<{ marker: string }>(
    "SELECT data ->> 'marker' AS marker FROM entries WHERE type = 'drill'",
    [],
    'annals',
  )
  const stored = new Set(rows.map(({ marker }) => marker))
  const appends = load.written.filter(({ marker }) => marker !== 'session')
  const lost = appends.filter(({ fate, marker }) => fate === 'acknowledged' && !stored.has(marker)).length
  const unasked = appends.filter(({ fate, marker }) => fate === 'refused' && stored.has(marker)).length
  const { acknowledged, refused, in_doubt } = load.counts()
  const [slowest, in_vain] = [Math.round(load.slowest()), Math.round(load.readyInVain())]
  // Each step begins with none of its own: markers are counted anew.
  await primary.ask("DELETE FROM entries WHERE type = 'drill'", [], 'annals')
  say(
    `${name} (${replication}): ${acknowledged} acknowledged, ${lost} of them lost; ${refused} refused, ${unasked} of them stored; ${in_doubt} in doubt; writes again after ${back_ms === undefined ? 'never' : `${Math.round(back_ms)} ms`}; slowest write ${slowest} ms; ready in vain for ${in_vain} ms`,
  )
  return [
    ...(lost > 0 && replication === 'synchronous' ? [`${lost} acknowledged appends are lost`] : []),
    ...(unasked > 0 ? [`${unasked} refused appends are stored`] : []),
    ...(back_ms === undefined || back_ms > BACK_MS_MAX ? ['writes took too long to come back'] : []),
    ...(slowest > BOUND_MS ? [`a write took ${slowest} ms`] : []),
    ...(in_vain > BOUND_MS ? [`a node called itself ready for ${in_vain} ms while it wrote nothing`] : []),
  ]
}

async function startNodes({ primary, standby, pooler }: Scene, key: string, work: string) {
  const log = await open(join(work, 'nodes.log'), 'a')
  const direct = `postgresql://annals@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/annals?target_session_attrs=read-write`
  const env = {
    ...(pooler ? { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: direct } : { DATABASE_URL: direct }),
    ANNALS_API_KEY: key,
    LOG_LEVEL: 'warn',
  }
  const started: Array<{ launched: Launched; url: string }> = []
  // One after the other: the first one migrates.
  for (let count = 0; count < 2; count++) {
    const launched = launchService({ env, stderr: log.fd })
    const url = await launched.url
    if (url === undefined) throw new Error(`A node did not start: see ${work}`)
    started.push({ launched, url })
  }
  await log.close()
  return started
}

async function stopNode({ launched }: { launched: Launched }): Promise<void> {
  launched.child.kill('SIGTERM')
  await launched.exited
}

/** The planned way: the primary stops and sends the standby all that it has, which is then promoted. */
async function switchOver(scene: Scene): Promise<number> {
  await scene.primary.stop('SIGINT')
  return promoteStandby(scene)
}

async function failOver(scene: Scene, how: 'killed' | 'frozen'): Promise<number> {
  if (how === 'killed') await scene.primary.stop('SIGKILL')
  else await scene.primary.freeze()
  await sleep(2_000)
  return promoteStandby(scene)
}

/** The standby has not received the last second when it takes over. */
async function failOverLate(scene: Scene): Promise<number> {
  await scene.standby.set('primary_conninfo', '')
  await sleep(1_000)
  return failOver(scene, 'killed')
}

async function promoteStandby(scene: Scene): Promise<number> {
  const { primary, standby, pooler } = scene
  // Nobody is there to acknowledge what the new primary commits.
  await standby.set('synchronous_standby_names', '')
  await standby.promote()
  await pooler?.lead(standby.port)
  Object.assign(scene, { primary: standby, standby: primary })
  return performance.now()
}

/** New connections can only read, and the old ones are ended. */
async function makeReadOnly({ primary }: Scene): Promise<number> {
  await primary.ask('ALTER ROLE annals SET default_transaction_read_only = on')
  await primary.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'annals'")
  await sleep(5_000)
  await primary.ask('ALTER ROLE annals RESET default_transaction_read_only')
  return performance.now()
}

async function takeStandbyAway({ standby }: Scene): Promise<number> {
  await standby.stop('SIGKILL')
  await sleep(15_000)
  await standby.start()
  return performance.now()
}

/** As for a moment of maintenance: what is under way ends, and what comes waits. */
async function pausePooler({ pooler }: Scene): Promise<number> {
  await pooler!.tell('PAUSE')
  await sleep(5_000)
  await pooler!.tell('RESUME')
  return performance.now()
}

async function killPooler({ pooler }: Scene): Promise<number> {
  await pooler!.stop()
  await sleep(2_000)
  await pooler!.start()
  return performance.now()
}

/** The role has reached its limit of connections, as when another program takes them all. */
async function starve({ primary }: Scene): Promise<number> {
  await primary.ask('ALTER ROLE annals CONNECTION LIMIT 1')
  await primary.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'annals'")
  await sleep(5_000)
  await primary.ask('ALTER ROLE annals CONNECTION LIMIT -1')
  return performance.now()
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
