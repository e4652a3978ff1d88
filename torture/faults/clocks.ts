import type { Random } from '../../lab/random.ts'
import { FAKETIME } from '../world/clock.ts'
import type { OwnWorld } from '../world/world.ts'
import { type Fault, lull } from './fault.ts'

const reasonAgainst = () =>
  FAKETIME ? undefined : 'it needs libfaketime: on Debian, "apt-get install faketime"'

/** Clocks that are set back and forward by minutes while the process runs. */
export const CLOCK_FAULTS: Fault[] = [
  {
    kind: "node's clock set",
    times: 10,
    first: true,
    reasonAgainst,
    strike: async (world, random) => {
      const node = random.pick(world.nodes)
      await world.clock.set(0)
      await node.stop('SIGKILL')
      await node.start(world.clock.environment)
      await swing(world, random)
      await node.stop('SIGKILL')
      return { returned_at: await node.start(), nodes: [node], started: node }
    },
  },
  {
    kind: "database's clock set",
    times: 10,
    first: true,
    reasonAgainst,
    strike: async (world, random) => {
      await world.clock.set(0)
      await world.postgres.stop('SIGINT')
      await world.postgres.start(world.clock.environment)
      await swing(world, random)
      await world.postgres.stop('SIGINT')
      return { returned_at: await world.postgres.start(), nodes: world.nodes }
    },
  },
]

/**
 * Back, far forward, and back again, by minutes each time. Forward by more than anything waits: what was to wait a moment by
 * such a clock is noticed once it is set back. After a smaller step it waits for as long as the step, which takes minutes.
 */
async function swing({ clock }: OwnWorld, random: Random): Promise<void> {
  await lull(random, 300, 600)
  for (const direction of random.shuffled([-1, 1, -1])) {
    await clock.set(direction > 0 ? random.integer(750, 1_800) : -random.integer(60, 900))
    await lull(random, 500, 1_000)
  }
}
