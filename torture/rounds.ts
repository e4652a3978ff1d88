import type { Random } from '../lab/random.ts'
import { type Away, judgeAway } from './away.ts'
import type { Probe } from './clients/probe.ts'
import { type Fault, lull } from './faults/fault.ts'
import type { Options } from './options.ts'
import { inWords, RECOVERY_MS_MAX, recovered } from './recovery.ts'
import type { World } from './world/world.ts'

/** How often a fault without effect is retried. */
const REPEATS_MAX = 5

/** What is known of one kind of fault at the end. */
export interface Tally {
  kind: string
  kills: number
  struck: number
  /** Of these, those without a visible effect. */
  missed: number
  /** For a node that survived it: this is the service's own doing. */
  recovery_ms_max: number
  /** The same without the time in which it waited for a CPU. */
  awake_ms_max: number
  /** For a restarted node, from the moment at which it was ready. */
  start_ms_max: number
  skipped?: string
}

/** What the rounds came to. */
export interface Rounds {
  count: number
  tallies: Tally[]
  away: Away
  /** Violations, one sentence each. */
  problems: string[]
}

/** Injects faults, one after the other, and waits after each until the service is back. */
export async function runRounds(
  world: World,
  probes: Probe[],
  options: Options & { isInterrupted: () => boolean; started_at: number },
  random: Random,
  say: (line: string) => void,
  afterEach: () => Promise<void>,
): Promise<Rounds> {
  const tallies = new Map<Fault<World>, Tally>(options.faults.map((fault) => [fault, tallyOf(fault, world)]))
  const rounds: Rounds = {
    count: 0,
    tallies: [...tallies.values()],
    away: {
      refused: 0,
      refused_ms_max: 0,
      refused_awake_ms_max: 0,
      unanswered: 0,
      unanswered_ms_max: 0,
      wrong: new Map(),
    },
    problems: [],
  }
  const able = options.faults.filter((fault) => tallies.get(fault)?.skipped === undefined)
  const until = options.minutes === undefined ? Infinity : options.started_at + options.minutes * 60_000
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
    // A fault that failed in the middle may leave anything behind: the comparison follows at once.
    if (!struck) break
    const recovery = await recovered(world, struck, probes)
    tally.struck += 1
    if (struck.missed) {
      tally.missed += 1
      plan.missed(fault)
    }
    if (struck.problem) rounds.problems.push(`${fault.kind}: ${struck.problem}`)
    if (!recovery.isBack) {
      const met = probes.map((probe) => probe.metAfter(struck.returned_at)).join('; ')
      rounds.problems.push(
        `${fault.kind}: a node did not write for ${RECOVERY_MS_MAX / 1_000} s afterwards (${met})`,
      )
    }
    tally.recovery_ms_max = Math.max(tally.recovery_ms_max, recovery.living_ms)
    tally.awake_ms_max = Math.max(tally.awake_ms_max, recovery.awake_ms)
    tally.start_ms_max = Math.max(tally.start_ms_max, recovery.started_ms)
    await afterEach()
    if (struck.away) judgeAway(struck.away, probes, rounds.away)
    say(
      `${String(rounds.count).padStart(4)}  ${fault.kind}${struck.missed ? ' (without effect)' : ''}: ${
        recovery.isBack ? inWords(recovery) : 'NOT back'
      }${struck.note ? `; ${struck.note}` : ''}`,
    )
  }
  return rounds
}

function tallyOf(fault: Fault<World>, world: World): Tally {
  const skipped = fault.reasonAgainst?.(world)
  return {
    kind: fault.kind,
    kills: fault.kills ?? 0,
    struck: 0,
    missed: 0,
    recovery_ms_max: 0,
    awake_ms_max: 0,
    start_ms_max: 0,
    ...(skipped && { skipped }),
  }
}

/**
 * The order of faults: each as often as required, in random order, and one without effect once more; in a run of some
 * minutes, each once, repeatedly.
 */
class Plan {
  private readonly coming: Fault<World>[]
  private readonly repeats = new Map<Fault<World>, number>()
  private readonly faults: Fault<World>[]
  private readonly random: Random
  private readonly endless: boolean

  constructor(faults: Fault<World>[], options: Options, random: Random) {
    this.faults = faults
    this.random = random
    this.endless = options.minutes !== undefined
    const times = (fault: Fault<World>) => (this.endless ? 1 : fault.times)
    this.coming = random.shuffled(faults.flatMap((fault) => Array<Fault<World>>(times(fault)).fill(fault)))
    if (this.endless) this.coming.sort((a, b) => Number(b.first ?? false) - Number(a.first ?? false))
  }

  next(): Fault<World> | undefined {
    if (this.coming.length === 0 && this.endless) this.coming.push(...this.random.shuffled(this.faults))
    return this.coming.shift()
  }

  missed(fault: Fault<World>): void {
    const repeats = this.repeats.get(fault) ?? 0
    if (this.endless || repeats >= REPEATS_MAX) return
    this.repeats.set(fault, repeats + 1)
    this.coming.push(fault)
  }
}
