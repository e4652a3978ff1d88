import { writeFile } from 'node:fs/promises'
import { cpus, setPriority } from 'node:os'
import { LabFailure } from '../lab/failure.ts'
import { ATTACKS } from './attacks/catalogue.ts'
import { type Options, readOptions } from './options.ts'
import { attackLine, brokenLines, COLUMNS } from './report.ts'
import { endure, quietly } from './run.ts'
import { TRIALS } from './trials/catalogue.ts'
import type { Judged } from './verdict.ts'
import { readBack } from './victim/victim.ts'
import { STOP_MS_MAX } from './world/service.ts'
import { startWorld, type World } from './world/world.ts'

/**
 * Attacks its own service and watches how another tenant fares. `--help` lists the options and the attacks;
 * docs/reliability.md describes the rest. Ctrl-C ends the current attack, and everything that was started.
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
    // Once more, because the end of the output may be all that is kept of it.
    for (const line of outcomes.flatMap(brokenLines)) say(line)
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
  const tell = (outcome: Judged) => {
    if (stopped.aborted) return
    say(attackLine(outcome))
    outcomes.push(outcome)
  }
  const isChosen = ({ name }: { name: string }) => options.attacks.includes(name) && !stopped.aborted
  for (const attack of ATTACKS)
    if (isChosen(attack)) tell(await endure(world, attack, baseline, { ...options, stopped }))
  await world.service.stop(STOP_MS_MAX * 2)
  for (const trial of TRIALS) {
    const reason = trial.reasonAgainst?.()
    if (reason !== undefined) say(`${trial.name}: skipped, ${reason}`)
    else if (isChosen(trial)) tell(await trial.run(world, { ...options, stopped }))
  }
  return outcomes
}

/** Reads back what was acknowledged, and ends the service; gives what was wrong, in a sentence each. */
async function end({ service, tenant, victim }: World): Promise<string[]> {
  await service.start()
  const problems = await readBack(service.url, tenant, victim.ledger)
  const { size, sessionIds } = victim.ledger
  say(`${size} acknowledged entries of ${sessionIds.length} sessions, ${problems.length} missing`)
  const { code, took_ms } = await service.stop(STOP_MS_MAX)
  if (code !== 0) problems.push(`after SIGTERM the service ended with ${code} in ${Math.round(took_ms)} ms`)
  if ((await service.postgresPid()) !== undefined) problems.push('its PostgreSQL was left behind')
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
