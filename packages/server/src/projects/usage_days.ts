import { DatabaseAway, type Tenant } from '../postgres/database.js'
import { isForeignKeyViolation } from '../postgres/database_errors.js'
import type { SharedDatabase } from '../postgres/shared_pool.js'
import { ADD_USAGE, READ_MODEL_TOKENS, READ_USAGE_DAYS } from './usage_queries.js'

const DAY_MS = 86_400_000
const KINDS = ['sessions', 'entries', 'bytes', 'blobs', 'blob_bytes'] as const

const NOTHING = { sessions: 0, entries: 0, bytes: 0, blobs: 0, blob_bytes: 0 }
const NO_USE = { ...NOTHING, statements: 0, model_tokens: 0 }

/** `day`: such as 2026-11-21, in UTC. */
export type UsageDay = typeof NO_USE & { day: string }

/** What was stored. */
export type Stored = Partial<Record<(typeof KINDS)[number], number>>

type Imported = Readonly<Record<string, { stored: number; bytes?: number } | undefined>>

/**
 * What this node has stored for each project and is not yet in usage_days. It is counted in memory, behind the commit,
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
          if (is_away) throw error
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
 * What a project stored and used on each of the last days with any use, newest first. `made`: how many statements were
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

/** Such as 2026-11-21, of a day since 1970. */
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
