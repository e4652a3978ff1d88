import type { OwnWorld, World } from '../world/world.ts'
import { type Fault, lull, type Struck } from './fault.ts'

/** Nodes, and the model, killed or terminated under load. */
export const NODE_FAULTS: Fault<World>[] = [
  {
    kind: 'node killed',
    kills: 1,
    times: 14,
    strike: async ({ nodes }, random) => {
      const node = random.pick(nodes)
      await node.stop('SIGKILL')
      await lull(random, 0, 500)
      return { returned_at: await node.start(), nodes: [node], started: node }
    },
  },
  {
    kind: 'node terminated',
    times: 10,
    strike: async ({ nodes }, random) => {
      const node = random.pick(nodes)
      const code = await node.stop('SIGTERM')
      const returned_at = await node.start()
      const struck = { returned_at, nodes: [node], started: node }
      return code === 0 ? struck : { ...struck, problem: `after SIGTERM ${node.name} ended with ${code}` }
    },
  },
  {
    kind: 'model killed',
    times: 10,
    strike: async ({ model }, random) => {
      await model.kill()
      await lull(random, 200, 3_000)
      await model.start()
      return { returned_at: performance.now(), nodes: [] }
    },
  },
]

/** The database killed under load. */
export const PROCESS_FAULTS: Fault[] = [
  {
    kind: 'database killed',
    kills: 1,
    times: 14,
    strike: async (world, random) => {
      const from = performance.now()
      await world.postgres.stop('SIGKILL')
      await lull(random, 0, 1_500)
      return back(world, from, await world.postgres.start())
    },
  },
  {
    kind: 'backend killed',
    kills: 1,
    times: 12,
    strike: async (world, random) => {
      const { postgres } = world
      const behind = postgres.endOfLog()
      const backends = await postgres.ask<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE usename = 'annals' ORDER BY state = 'active' DESC, pid LIMIT 6",
      )
      const from = performance.now()
      process.kill(random.pick(backends).pid, 'SIGKILL')
      return back(world, from, await postgres.recovered(behind))
    },
  },
  {
    kind: 'node and database killed',
    kills: 2,
    times: 10,
    strike: async (world, random) => {
      const node = random.pick(world.nodes)
      const from = performance.now()
      await Promise.all([node.stop('SIGKILL'), world.postgres.stop('SIGKILL')])
      await lull(random, 0, 1_000)
      const [database_at, node_at] = await Promise.all([world.postgres.start(), node.start()])
      const returned_at = Math.max(database_at, node_at)
      return { ...back(world, from, database_at), returned_at, started: node }
    },
  },
]

function back({ nodes }: OwnWorld, from: number, to: number): Struck {
  return { returned_at: to, nodes, away: { from, to } }
}
