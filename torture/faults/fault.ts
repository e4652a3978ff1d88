import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'
import type { ServiceNode } from '../world/node.ts'
import type { OwnWorld, World } from '../world/world.ts'

/** The effect of a fault, and when the service must have recovered. */
export interface Struck {
  /** When the fault ended: the recovery time counts from here. */
  returned_at: number
  /** The nodes that must write again. */
  nodes: readonly ServiceNode[]
  /** Of these, the one that was restarted: a new process takes its time to warm up. */
  started?: ServiceNode
  /** While the database was unavailable: every request of that time must be refused soon, or left unanswered. */
  away?: { from: number; to: number }
  /** What went wrong with the fault itself, such as a migration that failed. */
  problem?: string
  /** What else is to be said of it. */
  note?: string
  /** It had no visible effect this time, such as no deadlock. */
  missed?: boolean
}

/** A kind of fault, in a world of the run's own or in any. */
export interface Fault<W extends World = OwnWorld> {
  kind: string
  /** How many kills it counts as. */
  kills?: number
  /** How often it occurs in a full run. */
  times: number
  /** Too long for the short run. */
  long?: boolean
  /** A run of some minutes begins with it, so that none is without. */
  first?: boolean
  /** Why it is not possible here; undefined if it is. */
  reasonAgainst?(world: W): string | undefined
  strike(world: W, random: Random): Promise<Struck>
}

/** Waits for a random time. */
export function lull(random: Random, from_ms: number, to_ms: number): Promise<void> {
  return sleep(random.integer(from_ms, to_ms))
}
