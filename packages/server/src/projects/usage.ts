import { DatabaseAway, type Row, type SharedDatabase, type Tenant } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation } from '@annals/kits/postgres/database_errors.js'
import type { Statement } from '@annals/kits/postgres/statement.js'
import { LRUCache } from 'lru-cache'
import { quotaExceeded } from './quotas.js'
import {
  ADD_USAGE,
  COUNT_BLOBS,
  COUNT_BYTES,
  COUNT_INPUTS,
  COUNT_SESSIONS,
  COUNT_STATEMENTS,
  READ_MODEL_TOKENS,
  READ_SIZE,
  READ_SIZE_UP_TO,
  READ_USAGE_DAYS,
} from './usage_queries.js'

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

/**
 * Room that is reserved until it is first settled. What was stored counts from then on, however late that is known: an
 * append in doubt is settled with nothing, and again if it turns out to be stored.
 */
export interface Reservation {
  settle(stored: Stored): void
}

const COUNTED = ['sessions', 'bytes', 'blob_bytes'] as const
type Counted = (typeof COUNTED)[number]

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
  const taken: Array<[Counted, Reservation]> = []
  let made: T | undefined
  try {
    for (const [what, amount] of Object.entries(amounts) as Array<[Counted, number]>) {
      const reservation = await room[what]?.(amount)
      if (reservation) taken.push([what, reservation])
    }
    made = await make()
    return made
  } finally {
    for (const [what, reservation] of taken)
      reservation.settle(made === undefined ? {} : { [what]: amounts[what] })
  }
}

/**
 * The usage of projects, for quotas and for those who ask. It is added up from the heads of a project's sessions from
 * time to time, only for projects with a quota, or on request:
 *
 *   unknown ──first need: waits──▶ counted ──5 s old, or 1 s if it refuses──▶ recounted in the background
 *
 * Between two counts, what this node admitted is added. So a node never lets a project exceed its quota by itself;
 * what other nodes store shows with the next count. What is stored while a count runs may be in it as well, so the
 * project is counted again before that refuses a request.
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

  /** Counts stored rows and bytes by day, and releases the room that was reserved for them. */
  stored(project_id: string, stored: Stored, room?: Reservation): void {
    this.days.add(project_id, stored)
    room?.settle(stored)
  }

  /**
   * Reserves room for so many more sessions or bytes of a project, until they are stored or not.
   * @throws AnnalsError quota_exceeded, unavailable
   */
  async reserve(project_id: string, what: Counted, amount: number, max: number): Promise<Reservation> {
    const project = this.of(project_id)
    if (!project.counted) await project.count()
    else if (project.ageOver(COUNT_AGE_MS_MAX)) project.count().catch(() => {})
    if (!project.has(what, amount, max) && project.ageOver(project.is_exact ? COUNT_AGE_MS_MIN : 0))
      await project.count()
    if (!project.has(what, amount, max)) throw quotaExceeded(`max_${what}`, max)
    return project.reserve(what, amount)
  }

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
  is_exact = true
  private counted_at_ms = 0
  private count_ms = 0
  /** Stored by this node since the last count began. */
  private readonly added = { sessions: 0, bytes: 0, blob_bytes: 0 }
  private readonly reserved = { sessions: 0, bytes: 0, blob_bytes: 0 }

  constructor(private readonly tenant: Tenant) {}

  has(what: Counted, amount: number, max: number): boolean {
    return this.counted![what] + this.added[what] + this.reserved[what] + amount <= max
  }

  reserve(what: Counted, amount: number): Reservation {
    this.reserved[what] += amount
    let reserved = amount
    return {
      settle: (stored) => {
        this.reserved[what] -= reserved
        reserved = 0
        this.added[what] += stored[what] ?? 0
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
    const is_storing = COUNTED.some((what) => this.reserved[what] > 0)
    const counted = await countUsage(this.tenant)
    this.counted = { ...counted, counted_at: new Date().toISOString().replace('Z', '000Z') }
    // The count includes what was stored before it began.
    for (const what of COUNTED) this.added[what] -= before[what]
    this.is_exact = !is_storing && COUNTED.every((what) => this.added[what] === 0)
    this.counted_at_ms = performance.now()
    this.count_ms = this.counted_at_ms - began
  }
}

const DAY_MS = 86_400_000
/** How long a write goes on though a database is away. */
const AWAY_MS_MAX = 3_000
const KINDS = ['sessions', 'entries', 'bytes', 'blobs', 'blob_bytes'] as const

const NOTHING = { sessions: 0, entries: 0, bytes: 0, blobs: 0, blob_bytes: 0 }
const NO_USE = { ...NOTHING, statements: 0, model_tokens: 0 }

/** `day`: such as 2026-11-21, in UTC. */
export type UsageDay = typeof NO_USE & { day: string }

export type Stored = Partial<Record<(typeof KINDS)[number], number>>

type Imported = Readonly<Record<string, { stored: number; bytes?: number } | undefined>>

/**
 * Amounts that this node stored for each project and that are not yet in usage_days. They are counted in memory, after the commit,
 * and written every few seconds by `write`, so that it costs an append nothing in the database. What is lost with the
 * process, or with the answer to a write, is not counted: figures may be too low by that, and are never too high.
 */
export class UsageDays {
  /** By day since 1970, in UTC, and project. */
  private readonly days = new Map<number, Map<string, Required<Stored>>>()

  constructor(private readonly database: SharedDatabase) {}

  add(
    project_id: string,
    { sessions = 0, entries = 0, bytes = 0, blobs = 0, blob_bytes = 0 }: Stored,
    day = Math.floor(Date.now() / DAY_MS),
  ): void {
    const counts = this.days.get(day)?.get(project_id) ?? this.begin(project_id, day)
    counts.sessions += sessions
    counts.entries += entries
    counts.bytes += bytes
    counts.blobs += blobs
    counts.blob_bytes += blob_bytes
  }

  private begin(project_id: string, day: number): Required<Stored> {
    const counts = { ...NOTHING }
    this.days.set(day, (this.days.get(day) ?? new Map()).set(project_id, counts))
    return counts
  }

  /** Counts what an import stored, by the names of tables. */
  addImported(project_id: string, { sessions, entries, blobs }: Imported): void {
    this.add(project_id, {
      sessions: sessions?.stored ?? 0,
      entries: entries?.stored ?? 0,
      bytes: entries?.bytes ?? 0,
      blobs: blobs?.stored ?? 0,
      blob_bytes: blobs?.bytes ?? 0,
    })
  }

  /** Writes what was counted, of all projects or one. Throws what went wrong; what surely was not written is kept. */
  async write(only_id?: string): Promise<void> {
    let failure: unknown
    const until = performance.now() + AWAY_MS_MAX
    for (const [day, projects] of this.days) {
      for (const project_id of only_id === undefined ? [...projects.keys()] : [only_id]) {
        const counts = projects.get(project_id)
        if (!counts) continue
        projects.delete(project_id)
        const row = [project_id, dayText(day)]
        try {
          await this.database.of('usage').query(ADD_USAGE, [...row, ...KINDS.map((kind) => counts[kind])])
        } catch (error) {
          if (isForeignKeyViolation(error)) continue // The project was erased.
          const is_away = error instanceof DatabaseAway
          if (!(is_away && error.in_doubt)) this.add(project_id, counts, day)
          // On a cluster, one machine may be away: other projects are written, unless the wait for it was long.
          if (is_away && performance.now() > until) throw error
          failure = error
        }
      }
      // Another write may have ended the day meanwhile, and what came then has begun it anew.
      if (projects.size === 0 && this.days.get(day) === projects) this.days.delete(day)
    }
    if (failure) throw failure
  }
}

/**
 * A project's amounts on each of the last days with any use, newest first. `made`: how many statements were
 * made on which day.
 */
export async function readDays(
  { database, project_id }: Tenant,
  days: number,
  made: ReadonlyMap<string, number>,
): Promise<UsageDay[]> {
  const first = dayText(Math.floor(Date.now() / DAY_MS) - days + 1)
  const found = new Map<string, UsageDay>()
  for (const [day, statements] of made) if (day >= first) found.set(day, { ...NO_USE, day, statements })
  for (const { day, ...figures } of await database.query(READ_USAGE_DAYS, [project_id, days])) {
    const numbers = Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Number(value)]))
    found.set(day!, { ...NO_USE, ...found.get(day!), ...numbers, day: day! })
  }
  return [...found.values()].sort((one, other) => (one.day < other.day ? 1 : -1))
}

function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}

/** A project's quota of model tokens a day, in UTC, and what it has used of it today. */
export async function readModelTokens(
  { database, project_id }: Tenant,
  default_max: number,
): Promise<{ used: number; max: number }> {
  const [row] = await database.query(READ_MODEL_TOKENS, [project_id])
  return { used: Number(row?.used ?? 0), max: Number(row?.max ?? default_max) }
}

/** Most sessions that one statement adds up: some ten milliseconds of work. */
const SESSIONS_AT_ONCE = 20_000

export interface Counts {
  sessions: number
  entries: number
  bytes: number
  blobs: number
  blob_bytes: number
  statements: number
  /** Of them, by the day on which they were made, such as 2026-11-21, in UTC. */
  statement_days: ReadonlyMap<string, number>
}

/** A session's entries and their bytes, from its head or of those up to a seq; 0 if there is no such session. */
export async function readSize(
  { database, project_id }: Tenant,
  session_id: string,
  up_to_seq?: number,
): Promise<{ entries: number; bytes: number }> {
  const [row] =
    up_to_seq === undefined
      ? await database.query(READ_SIZE, [project_id, session_id])
      : await database.query(READ_SIZE_UP_TO, [project_id, session_id, up_to_seq])
  return { entries: Number(row?.entries ?? 0), bytes: Number(row?.bytes ?? 0) }
}

/** Adds up the heads of a project, with the logs of those that do not know their bytes, and input that is no entry yet. */
export async function countUsage(tenant: Tenant, at_once = SESSIONS_AT_ONCE): Promise<Counts> {
  const { database, project_id } = tenant
  const usage = { sessions: 0, entries: 0, bytes: 0, blobs: 0, blob_bytes: 0, statements: 0 }
  for await (const row of slicesOf(tenant, COUNT_BLOBS, at_once)) {
    usage.blobs += Number(row.blobs)
    usage.blob_bytes += Number(row.blob_bytes)
  }
  const statement_days = new Map<string, number>()
  for await (const row of slicesOf(tenant, COUNT_STATEMENTS, at_once)) {
    usage.statements += Number(row.found)
    for (const [day, count] of Object.entries(JSON.parse(row.days ?? '{}') as Record<string, number>))
      statement_days.set(day, (statement_days.get(day) ?? 0) + count)
  }
  for await (const row of slicesOf(tenant, COUNT_INPUTS, at_once)) usage.bytes += Number(row.bytes)
  for await (const row of slicesOf(tenant, COUNT_SESSIONS, at_once)) {
    usage.sessions += Number(row.found)
    usage.entries += Number(row.entries)
    usage.bytes += Number(row.bytes)
    for (const session_id of row.uncounted?.split(',') ?? []) {
      const [counted] = await database.query(COUNT_BYTES, [project_id, session_id])
      usage.bytes += Number(counted?.bytes ?? 0)
    }
  }
  return { ...usage, statement_days }
}

/** Counts in slices of this many rows: each row has how many it found, and the last of them. */
async function* slicesOf(
  { database, project_id }: Tenant,
  statement: Statement,
  at_once: number,
): AsyncGenerator<Row> {
  for (let last: string | null = null; ; ) {
    const [row]: Row[] = await database.query(statement, [project_id, at_once, last])
    yield row!
    if (Number(row!.found) < at_once) return
    last = row!.last!
  }
}
