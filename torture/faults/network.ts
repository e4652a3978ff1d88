import { setTimeout as sleep } from 'node:timers/promises'
import { CLIENT_WAIT_MS } from '../clients/http.ts'
import type { Line, Rule } from '../world/line.ts'
import type { World } from '../world/world.ts'
import { type Fault, lull } from './fault.ts'

/** Connections cut in the middle of requests and answers, and answers that come too late. */
export const NETWORK_FAULTS: Fault<World>[] = [
  onLines('requests cut', { do: 'cut_request', probability: 0.3 }, nodeLines),
  onLines('answers cut', { do: 'cut_answer', probability: 0.3 }, nodeLines),
  onLines(
    'answers delayed',
    { do: 'delay_answer', probability: 0.3, delay_ms: CLIENT_WAIT_MS + 500 },
    nodeLines,
  ),
  onLines('statements cut', { do: 'cut_request', probability: 0.05 }, databaseLine),
  onLines('results cut', { do: 'cut_answer', probability: 0.05 }, databaseLine),
  onLines('results delayed', { do: 'delay_answer', probability: 0.1, delay_ms: 7_000 }, databaseLine),
]

function nodeLines({ nodes }: World): Line[] {
  return nodes.map(({ line }) => line)
}

function databaseLine({ databaseLine }: World): Line[] {
  return [databaseLine]
}

function onLines(kind: string, rule: Rule, linesOf: (world: World) => Line[]): Fault<World> {
  return {
    kind,
    times: 10,
    strike: async (world, random) => {
      const lines = linesOf(world)
      const hits = () => lines.reduce((sum, line) => sum + line.hits, 0)
      const before = hits()
      for (const line of lines) line.rule = rule
      await lull(random, 500, 1_500)
      for (const line of lines) line.rule = undefined
      // Delayed data has not arrived yet.
      while (lines.some(({ held }) => held > 0)) await sleep(20)
      return { nodes: world.nodes, returned_at: performance.now(), missed: hits() === before }
    },
  }
}
