import type { Judged } from '../verdict.ts'
import type { World } from '../world/world.ts'

/** What a run was asked for, as far as a trial needs it. */
export interface TrialOptions {
  seed: number
  isShort: boolean
  stopped: AbortSignal
}

/**
 * An attack that comes from the service's surroundings and not over its connections. It finds the service down, starts it
 * as it needs it, and leaves it down.
 */
export interface Trial {
  name: string
  /** What it does, in a sentence. */
  does: string
  /** Why it cannot be done here; undefined if it can. */
  reasonAgainst?(): string | undefined
  run(world: World, options: TrialOptions): Promise<Judged>
}
