import { setTimeout as sleep } from 'node:timers/promises'
import { starvation } from '../lab/cpu_wait.ts'
import type { Probe } from './clients/probe.ts'
import type { Struck } from './faults/fault.ts'
import { noteStandstill } from './world/standstill.ts'
import type { World } from './world/world.ts'

/** Longest time for a node to write again at all, without what it waits for a CPU. */
export const RECOVERY_MS_MAX = 30_000
/** And with it: a node that gets a tenth of a CPU may not even accept what a busy machine's other processes send. */
const WAITED_MS_MAX = 4 * RECOVERY_MS_MAX
/** After these times, what blocks it is recorded. */
const NOTED_AFTER_MS = [1_500, 5_000, 25_000]

/** How long the nodes took to write again, in ms; one that did not in time counts with the time that it had. */
export interface Recovery {
  isBack: boolean
  /** Of the nodes that lived through the fault. */
  living_ms: number
  /** The same without what a busy machine cost: the time in which the node, or this run, waited for a CPU. */
  awake_ms: number
  /** Of a node that was started again. */
  started_ms: number
}

/** Waits until every node concerned has written again, or for as long as one may take. */
export async function recovered(world: World, struck: Struck, probes: Probe[]): Promise<Recovery> {
  const { returned_at, nodes, started } = struck
  const waits = probes
    .filter(({ node }) => nodes.includes(node))
    .map((probe) => ({
      probe,
      starvedSince: starvation(probe.node.pid),
      starved_ms: 0,
      took_ms: RECOVERY_MS_MAX,
      isBack: false,
      isGivenUp: false,
    }))
  const noteAfter = [...NOTED_AFTER_MS]
  while (waits.some(({ isBack, isGivenUp }) => !isBack && !isGivenUp)) {
    const waited_ms = performance.now() - returned_at
    for (const wait of waits.filter(({ isBack }) => !isBack)) {
      const took_ms = wait.probe.wroteAfter(returned_at)
      wait.starved_ms = wait.starvedSince()
      if (took_ms !== undefined) Object.assign(wait, { took_ms, isBack: true })
      else if (waited_ms > Math.min(RECOVERY_MS_MAX + wait.starved_ms, WAITED_MS_MAX))
        Object.assign(wait, { took_ms: waited_ms, isGivenUp: true })
    }
    if (performance.now() > returned_at + (noteAfter[0] ?? Infinity)) {
      const waited = `${noteAfter.shift()} ms`
      for (const { probe } of waits.filter(({ isBack }) => !isBack))
        void noteStandstill(world, probe.node, waited)
    }
    await sleep(20)
  }
  const living = waits.filter(({ probe }) => probe.node !== started)
  const most = (times: number[]) => Math.max(0, ...times)
  return {
    isBack: waits.every(({ isBack }) => isBack),
    living_ms: most(living.map(({ took_ms }) => took_ms)),
    awake_ms: most(living.map(({ took_ms, starved_ms }) => took_ms - starved_ms)),
    started_ms: most(waits.filter((wait) => !living.includes(wait)).map(({ took_ms }) => took_ms)),
  }
}

/** A recovery, in words. */
export function inWords({ living_ms, awake_ms, started_ms }: Recovery): string {
  const starved_ms = living_ms - awake_ms
  const back = `back after ${Math.round(living_ms)} ms`
  return [
    ...(living_ms > 0
      ? [starved_ms > 200 ? `${back}, ${Math.round(starved_ms)} of them without a CPU` : back]
      : []),
    ...(started_ms > 0 ? [`started again after ${Math.round(started_ms)} ms`] : []),
  ].join(', ')
}
