import { LRUCache } from 'lru-cache'
import type { Tenant } from '../postgres/database.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import { type Counts, countUsage } from './count_usage.js'
import { quotaExceeded } from './quotas.js'
import { type Stored, UsageDays } from './usage_days.js'

const PROJECTS_REMEMBERED_MAX = 10_000
/** Largest age of a count in normal use, and if it would refuse a request or is requested itself. */
const COUNT_AGE_MS_MAX = 5_000
const COUNT_AGE_MS_MIN = 1_000
/** Counting a project takes at most a twentieth of the time. */
const PAUSE_FACTOR = 20

export interface Usage extends Counts {
  /** RFC 3339, by this node's clock. */
  counted_at: string
}

/** Room that was reserved and is not used yet. `settle` says how much of it was used. */
export interface Reservation {
  settle(used: number): void
}

type Counted = 'sessions' | 'bytes' | 'blob_bytes'

/** Reserves room for new sessions; a quota that a project does not have needs none. `made` is told what was stored. */
export type Room = Partial<Record<Counted, (amount: number) => Promise<Reservation>>> & {
  made?: (stored: Stored) => void
}

/**
 * Runs what creates something, with the room for it reserved; it returns undefined if it created nothing.
 * @throws AnnalsError quota_exceeded, unavailable
 */
export async function withinRoom<T>(
  room: Room,
  amounts: Partial<Record<Counted, number>>,
  make: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const taken: Array<[Reservation, number]> = []
  let made: T | undefined
  try {
    for (const [what, amount] of Object.entries(amounts) as Array<[Counted, number]>) {
      const reservation = await room[what]?.(amount)
      if (reservation) taken.push([reservation, amount])
    }
    made = await make()
    return made
  } finally {
    for (const [reservation, amount] of taken) reservation.settle(made === undefined ? 0 : amount)
  }
}

/**
 * The usage of projects, for quotas and for those who ask. It is added up from the heads of a project's sessions from
 * time to time, only for projects with a quota, or on request:
 *
 *   unknown ──first need: waits──▶ counted ──5 s old, or 1 s if it refuses──▶ recounted in the background
 *
 * Between two counts, what this node admitted is added. So a node never lets a project exceed its quota by itself;
 * what other nodes store shows with the next count.
 */
export class UsageDirectory {
  private readonly projects = new LRUCache<string, ProjectUsage>({ max: PROJECTS_REMEMBERED_MAX })
  readonly days: UsageDays

  constructor(private readonly database: SharedDatabase) {
    this.days = new UsageDays(database)
  }

  /** A project's usage, at most one second old, or twenty times as old as counting it takes. */
  async read(project_id: string): Promise<Usage> {
    const project = this.of(project_id)
    if (!project.counted || project.ageOver(COUNT_AGE_MS_MIN)) await project.count()
    return project.counted!
  }

  /**
   * Reserves room for so many more sessions or bytes of a project, until they are stored or not.
   * @throws AnnalsError quota_exceeded, unavailable
   */
  async reserve(project_id: string, what: Counted, amount: number, max: number): Promise<Reservation> {
    const project = this.of(project_id)
    if (!project.counted) await project.count()
    else if (project.ageOver(COUNT_AGE_MS_MAX)) project.count().catch(() => {})
    if (!project.has(what, amount, max) && project.ageOver(COUNT_AGE_MS_MIN)) await project.count()
    if (!project.has(what, amount, max)) throw quotaExceeded(`max_${what}`, max)
    return project.reserve(what, amount)
  }

  /** Open tails of a project at this node. */
  tailsOf: (project_id: string) => number = () => 0

  /** @param tailsOf tells how many tails of a project are open at this node */
  watchTails(tailsOf: (project_id: string) => number): void {
    this.tailsOf = tailsOf
  }

  private of(project_id: string): ProjectUsage {
    let project = this.projects.get(project_id)
    if (!project) {
      project = new ProjectUsage({ database: this.database.of(project_id), project_id })
      this.projects.set(project_id, project)
    }
    return project
  }
}

class ProjectUsage {
  counted: Usage | undefined
  private counting: Promise<void> | undefined
  private counted_at_ms = 0
  private count_ms = 0
  /** What this node stored since the last count began. */
  private readonly added = { sessions: 0, bytes: 0, blob_bytes: 0 }
  /** What this node is storing. */
  private readonly reserved = { sessions: 0, bytes: 0, blob_bytes: 0 }

  constructor(private readonly tenant: Tenant) {}

  has(what: Counted, amount: number, max: number): boolean {
    return this.counted![what] + this.added[what] + this.reserved[what] + amount <= max
  }

  reserve(what: Counted, amount: number): Reservation {
    this.reserved[what] += amount
    return {
      settle: (used) => {
        this.reserved[what] -= amount
        this.added[what] += used
      },
    }
  }

  ageOver(age_ms: number): boolean {
    return performance.now() - this.counted_at_ms > Math.max(age_ms, PAUSE_FACTOR * this.count_ms)
  }

  /** Recounts; callers that arrive meanwhile wait for the same count. */
  count(): Promise<void> {
    this.counting ??= this.addUp().finally(() => {
      this.counting = undefined
    })
    return this.counting
  }

  private async addUp(): Promise<void> {
    const began = performance.now()
    const before = { ...this.added }
    const counted = await countUsage(this.tenant)
    this.counted = { ...counted, counted_at: new Date().toISOString().replace('Z', '000Z') }
    // What was stored before the count began is in it; of what was stored during it, some may be counted twice until
    // the next.
    for (const what of ['sessions', 'bytes', 'blob_bytes'] as const) this.added[what] -= before[what]
    this.counted_at_ms = performance.now()
    this.count_ms = this.counted_at_ms - began
  }
}
