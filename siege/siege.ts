import { writeFile } from 'node:fs/promises'
import { cpus, setPriority } from 'node:os'
import { LabFailure } from '../lab/failure.ts'
import { ATTACKS } from './attacks/catalogue.ts'
import { type Options, readOptions } from './options.ts'
import { attackLine, COLUMNS } from './report.ts'
import { endure, quietly } from './run.ts'
import type { Judged } from './verdict.ts'
import { readBack } from './victim/victim.ts'
import { STOP_MS_EXTRA } from './world/service.ts'
import { startWorld, type World } from './world/world.ts'

/*
 * Attacks a service of its own and watches how another tenant fares. `--help` tells the options and the attacks,
 * docs/reliability.md the rest. Ctrl-C ends the attack that goes on, and what was started.
 */

/** The tenant that is watched goes before the attackers: its own waiting for a processor is no latency of the service. */
const AHEAD = -10

try {
  const options = readOptions(process.argv.slice(2))
  if (options) process.exitCode = (await siege(options)) ? 0 : 1
} catch (error) {
  if (!(error instanceof LabFailure)) throw error
  say(error.message)
  process.exitCode = 2
}

async function siege(options: Options): Promise<boolean> {
  const began = performance.now()
  takePriority()
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  say(`seed ${options.seed}`)
  const world = await startWorld(options)
  let held = false
  try {
    const outcomes = await run(world, options, stopped.signal)
    const problems = stopped.signal.aborted ? ['interrupted'] : await end(world)
    for (const problem of problems) say(`! ${problem}`)
    held = problems.length === 0 && outcomes.every(({ broken }) => broken.length === 0)
    if (options.json)
      await writeFile(
        options.json,
        `${JSON.stringify({ ...machine(), ...options, outcomes, problems }, null, 2)}\n`,
      )
    const failed = outcomes.filter(({ broken }) => broken.length > 0).map(({ attack }) => attack)
    const seconds = Math.round((performance.now() - began) / 1_000)
    say(
      held
        ? `${outcomes.length - 1} attacks in ${seconds} s, and every bound was kept.`
        : `${seconds} s. FAILED: ${failed.join(', ') || 'the end'}. --seed ${options.seed} repeats it.`,
    )
    return held
  } finally {
    const keep = (!held || options.keepLogs) && !stopped.signal.aborted
    await world.end(keep)
    if (keep) say(`The log is in ${world.work}`)
  }
}

async function run(world: World, options: Options, stopped: AbortSignal): Promise<Judged[]> {
  say(COLUMNS)
  const { baseline, judged } = await quietly(world)
  say(attackLine(judged))
  const outcomes = [judged]
  for (const attack of ATTACKS.filter(({ name }) => options.attacks.includes(name))) {
    if (stopped.aborted) break
    const outcome = await endure(world, attack, baseline, { ...options, stopped })
    if (stopped.aborted) break
    say(attackLine(outcome))
    outcomes.push(outcome)
  }
  return outcomes
}

/** Reads back what was acknowledged, and ends the service; gives what was wrong, in a sentence each. */
async function end({ service, tenant, victim }: World): Promise<string[]> {
  const problems = await readBack(service.url, tenant, victim.ledger)
  say(
    `${victim.ledger.size} acknowledged entries of ${victim.ledger.sessionIds.length} sessions, ${problems.length} missing`,
  )
  const postgres = await service.postgresPid()
  const { code, took_ms } = await service.stop(3_000 + STOP_MS_EXTRA)
  if (code !== 0) problems.push(`after SIGTERM the service ended with ${code} in ${Math.round(took_ms)} ms`)
  if (postgres === undefined) problems.push('its PostgreSQL was not found')
  else if ((await service.postgresPid()) !== undefined) problems.push('its PostgreSQL was left behind')
  return problems
}

function takePriority(): void {
  try {
    setPriority(AHEAD)
  } catch {
    // Only root may raise it. Latencies then include that this process waited for a processor.
  }
}

function machine() {
  const [cpu] = cpus()
  return { cpus: cpus().length, cpu: cpu?.model, node: process.version, at: new Date().toISOString() }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
