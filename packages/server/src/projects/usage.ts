import { LRUCache } from 'lru-cache'
import { AnnalsError } from '../errors.js'
import type { AppendOutcome, AppendRequest } from '../log/append/append_request.js'
import type { Appender } from '../log/append/appender.js'
import type { Queryable } from '../postgres/database.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import type { Quotas } from './quotas.js'
import { COUNT_BYTES, READ_BYTES, READ_USAGE } from './usage_queries.js'

/** Sessions that one statement adds up: some ten milliseconds' work. */
const SESSIONS_AT_ONCE = 20_000
const PROJECTS_REMEMBERED_MAX = 10_000
/** How old a count may become in use, and how old where it would make a request fail or is asked for itself. */
const COUNT_AGE_MS_MAX = 5_000
const COUNT_AGE_MS_MIN = 1_000
/** Of the time, counting a project takes no more than a twentieth. */
const PAUSE_FACTOR = 20

/** What a project has in the database, all nodes' doing, as it was counted. */
export interface Usage {
  sessions: number
  entries: number
  bytes: number
  /** RFC 3339, by this node's clock. */
  counted_at: string
}

/** Room that was given and is not used yet. `settle` says how much of it was. */
export interface Reservation {
  settle(used: number): void
}

type Counted = 'sessions' | 'bytes'

/** Gives room to what makes sessions; a quota that a project does not have gives none and needs none. */
export type Room = Partial<Record<Counted, (amount: number) => Promise<Reservation>>>

/**
 * Runs what makes something, with the room that it takes; it gives undefined where it made nothing.
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
 * What projects have, as far as quotas and whoever asks need to know. It is added up from the heads of a project's
 * sessions every now and then, and only for projects with a quota, or when somebody asks:
 *
 *     unknown ──first need: waits──▶ counted ──5 s old, or 1 s where it refuses──▶ counted anew, in the background
 *
 * Between two counts, what this node admitted is added to it. So a node never lets a project pass its quota by itself;
 * what other nodes store shows with the next count.
 */
export class UsageDirectory {
  private readonly projects = new LRUCache<string, ProjectUsage>({ max: PROJECTS_REMEMBERED_MAX })

  constructor(private readonly database: SharedDatabase) {}

  /** What a project has, no older than a second, or than twenty times what it takes to count. */
  async read(project_id: string): Promise<Usage> {
    const project = this.of(project_id)
    if (!project.counted || project.ageOver(COUNT_AGE_MS_MIN)) await project.count()
    return project.counted!
  }

  /**
   * Room for so many more sessions or bytes of a project, until they are stored or not.
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

  /**
   * Appends where there is room. At the limit, a retry of what was stored is still answered.
   * @throws AnnalsError quota_exceeded, and as Appender.append
   */
  async append(appender: Appender, request: AppendRequest, max_bytes: number): Promise<AppendOutcome> {
    const bytes = request.entries.reduce((sum, entry) => sum + entry.bytes, 0)
    let reservation: Reservation
    try {
      reservation = await this.reserve(request.project_id, 'bytes', bytes, max_bytes)
    } catch (error) {
      const mayBeKnown = request.idempotency || request.entries.some(({ id_given }) => id_given)
      const isOver = error instanceof AnnalsError && error.error === 'quota_exceeded'
      if (!isOver || !mayBeKnown) throw error
      return appender.append({ ...request, only_known: error })
    }
    let used = 0
    try {
      const outcome = await appender.append(request)
      used = outcome.replayed ? 0 : bytes
      return outcome
    } finally {
      reservation.settle(used)
    }
  }

  private of(project_id: string): ProjectUsage {
    let project = this.projects.get(project_id)
    if (!project) {
      project = new ProjectUsage(this.database.of(project_id), project_id)
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
  private readonly added = { sessions: 0, bytes: 0 }
  /** What this node is storing. */
  private readonly reserved = { sessions: 0, bytes: 0 }

  constructor(
    private readonly database: Queryable,
    private readonly project_id: string,
  ) {}

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

  /** Counts anew; whoever comes meanwhile waits for the same count. */
  count(): Promise<void> {
    this.counting ??= this.addUp().finally(() => {
      this.counting = undefined
    })
    return this.counting
  }

  private async addUp(): Promise<void> {
    const began = performance.now()
    const before = { ...this.added }
    const counted = await countUsage(this.database, this.project_id)
    this.counted = { ...counted, counted_at: new Date().toISOString().replace('Z', '000Z') }
    // What was stored before the count began is in it; of what came during it, some may be counted twice until the next.
    this.added.sessions -= before.sessions
    this.added.bytes -= before.bytes
    this.counted_at_ms = performance.now()
    this.count_ms = this.counted_at_ms - began
  }
}

/** The bytes of a session's entries, as its head knows them; 0 where there is no such session. */
export async function readBytes(
  database: Queryable,
  project_id: string,
  session_id: string,
): Promise<number> {
  const [row] = await database.query(READ_BYTES, [project_id, session_id])
  return Number(row?.bytes ?? 0)
}

/** Adds up the heads of a project, and first the logs of those that do not know their bytes. */
export async function countUsage(
  database: Queryable,
  project_id: string,
  sessions_at_once = SESSIONS_AT_ONCE,
): Promise<Omit<Usage, 'counted_at'>> {
  const usage = { sessions: 0, entries: 0, bytes: 0 }
  for (let last_id: string | undefined; ; ) {
    const [row] =
      last_id === undefined
        ? await database.query(READ_USAGE.first, [project_id, sessions_at_once])
        : await database.query(READ_USAGE.next, [project_id, sessions_at_once, last_id])
    for (const name of ['sessions', 'entries', 'bytes'] as const) usage[name] += Number(row![name])
    for (const session_id of row!.uncounted?.split(',') ?? []) {
      const [counted] = await database.query(COUNT_BYTES, [project_id, session_id])
      usage.bytes += Number(counted?.bytes ?? 0)
    }
    if (Number(row!.sessions) < sessions_at_once) return usage
    last_id = row!.last_id!
  }
}

const MEANING: Record<keyof Quotas, string> = {
  max_sessions: 'sessions. Nothing was stored: delete sessions',
  max_bytes: 'bytes of entries. Nothing was stored: delete sessions',
  max_tails: 'open tails at this node. Close tails',
}

/** The refusal of what would pass a quota. */
export function quotaExceeded(quota: keyof Quotas, max: number): AnnalsError {
  return new AnnalsError(
    'quota_exceeded',
    `The quota ${quota} allows this project ${max} ${MEANING[quota]}, or ask the operator for a higher quota.`,
  )
}
