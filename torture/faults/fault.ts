import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'
import type { ServiceNode } from '../world/node.ts'
import type { World } from '../world/world.ts'

/** What a fault did, and from when on the service must be well again. */
export interface Struck {
  /** When what had gone was there again: the time to recover counts from here. */
  returned_at: number
  /** The nodes that must write again. */
  nodes: readonly ServiceNode[]
  /** Of these, the one that was started again itself: a process that is new takes its time to warm up. */
  started?: ServiceNode
  /** While the database was away: every request of that time is to be refused, soon, or left unanswered. */
  away?: { from: number; to: number }
  /** What went wrong with the fault's own subject, such as a migration that failed. */
  problem?: string
  /** It did not come to pass this time, such as a deadlock of which nothing was seen. */
  missed?: boolean
}

/** A way of doing harm. */
export interface Fault {
  kind: string
  /** How many kills it counts as. */
  kills?: number
  /** How often it comes in a full run. */
  times: number
  /** Takes too long for the short run. */
  long?: boolean
  /** Why it cannot be done here, undefined if it can. */
  reasonAgainst?: (world: World) => string | undefined
  strike(world: World, random: Random): Promise<Struck>
}

/** Waits for a random time. */
export function lull(random: Random, from_ms: number, to_ms: number): Promise<void> {
  return sleep(random.integer(from_ms, to_ms))
}
