import type { Row, Tenant } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'
import {
  COUNT_BLOBS,
  COUNT_BYTES,
  COUNT_SESSIONS,
  COUNT_STATEMENTS,
  READ_SIZE,
  READ_SIZE_UP_TO,
} from './usage_queries.js'

/** Most sessions that one statement adds up: some ten milliseconds of work. */
const SESSIONS_AT_ONCE = 20_000

/** What a project has. */
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

/** Adds up the heads of a project, after the logs of those that do not know their bytes. */
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

/** What a statement counts, in slices of so many rows: each row has how many it found, and the last of them. */
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
