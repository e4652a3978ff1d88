import { setTimeout as sleep } from 'node:timers/promises'
import { type Away, judgeAway } from './away.ts'
import type { Probe } from './clients/probe.ts'
import { type Fault, lull, type Struck } from './faults/fault.ts'
import type { Options } from './options.ts'
import type { Random } from './random.ts'
import type { World } from './world/world.ts'

const RECOVERY_MS_MAX = 30_000
/** How often a fault that had no effect is tried again. */
const REPEATS_MAX = 5

/** What is known of one kind of fault at the end. */
export interface Tally {
  kind: string
  kills: number
  struck: number
  /** Of these, without an effect that could be seen. */
  missed: number
  recovery_ms_max: number
  skipped?: string
}

/** What the rounds came to. */
export interface Rounds {
  count: number
  tallies: Tally[]
  away: Away
  /** What must not be, in a sentence each. */
  problems: string[]
}

/** Injects faults, one after the other, and waits after each until the service is back. */
export async function runRounds(
  world: World,
  probes: Probe[],
  options: Options & { isInterrupted: () => boolean },
  random: Random,
  say: (line: string) => void,
): Promise<Rounds> {
  const tallies = new Map(options.faults.map((fault) => [fault, tallyOf(fault, world)]))
  const rounds: Rounds = {
    count: 0,
    tallies: [...tallies.values()],
    away: { refused: 0, refused_ms_max: 0, unanswered: 0, unanswered_ms_max: 0, wrong: new Map() },
    problems: [],
  }
  const able = options.faults.filter((fault) => tallies.get(fault)?.skipped === undefined)
  const until = options.minutes === undefined ? Infinity : performance.now() + options.minutes * 60_000
  const plan = new Plan(able, options, random)
  while (performance.now() < until && !options.isInterrupted()) {
    const fault = plan.next()
    if (!fault) break
    const tally = tallies.get(fault)!
    rounds.count += 1
    for (const probe of probes) probe.forget()
    await lull(random, 100, 500)
    const struck = await fault.strike(world, random).catch((error: unknown) => {
      rounds.problems.push(`${fault.kind}: the fault itself failed: ${error}`)
    })
    // What was done by halves may have left anything behind: the comparison follows at once.
    if (!struck) break
    const recovery_ms = await recovery(struck, probes)
    tally.struck += 1
    if (struck.missed) {
      tally.missed += 1
      plan.missed(fault)
    }
    if (struck.problem) rounds.problems.push(`${fault.kind}: ${struck.problem}`)
    if (recovery_ms === undefined) {
      const met = probes.map((probe) => probe.metAfter(struck.returned_at)).join('; ')
      rounds.problems.push(
        `${fault.kind}: a node did not write for ${RECOVERY_MS_MAX / 1_000} s afterwards (${met})`,
      )
    }
    tally.recovery_ms_max = Math.max(tally.recovery_ms_max, recovery_ms ?? RECOVERY_MS_MAX)
    if (struck.away) judgeAway(struck.away, probes, rounds.away)
    say(
      `${String(rounds.count).padStart(4)}  ${fault.kind}${struck.missed ? ' (without effect)' : ''}: ${
        recovery_ms === undefined ? 'NOT back' : `back after ${Math.round(recovery_ms)} ms`
      }`,
    )
  }
  return rounds
}

function tallyOf(fault: Fault, world: World): Tally {
  const skipped = fault.reasonAgainst?.(world)
  return {
    kind: fault.kind,
    kills: fault.kills ?? 0,
    struck: 0,
    missed: 0,
    recovery_ms_max: 0,
    ...(skipped && { skipped }),
  }
}

/**
 * What comes next: every fault as often as it is meant to come, in a random order, and one that had no effect once
 * more; for a run of some minutes, each once, again and again.
 */
class Plan {
  private readonly coming: Fault[]
  private readonly repeats = new Map<Fault, number>()
  private readonly faults: Fault[]
  private readonly random: Random
  private readonly endless: boolean

  constructor(faults: Fault[], options: Options, random: Random) {
    this.faults = faults
    this.random = random
    this.endless = options.minutes !== undefined
    const times = (fault: Fault) => (this.endless ? 1 : fault.times)
    this.coming = random.shuffled(faults.flatMap((fault) => Array<Fault>(times(fault)).fill(fault)))
  }

  next(): Fault | undefined {
    if (this.coming.length === 0 && this.endless) this.coming.push(...this.random.shuffled(this.faults))
    return this.coming.shift()
  }

  missed(fault: Fault): void {
    const repeats = this.repeats.get(fault) ?? 0
    if (this.endless || repeats >= REPEATS_MAX) return
    this.repeats.set(fault, repeats + 1)
    this.coming.push(fault)
  }
}

/** ms until every node concerned has written again; undefined when one did not in time. */
async function recovery({ returned_at, nodes }: Struck, probes: Probe[]): Promise<number | undefined> {
  const concerned = probes.filter(({ node }) => nodes.includes(node))
  while (performance.now() < returned_at + RECOVERY_MS_MAX) {
    const times = concerned.map((probe) => probe.wroteAfter(returned_at))
    if (times.every((time) => time !== undefined)) return Math.max(...times)
    await sleep(20)
  }
  return undefined
}
