import { StartError } from '../../errors.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { FIND_REMAINS_OF } from '../erase/erasure_queries.js'
import { type OwnRecord, type SessionRecord, wrongLine } from './export_format.js'
import type { ExportLine } from './read_export.js'
import {
  COUNT_NEW_USERS,
  FIND_DIFFERENT_ENTRIES,
  FIND_HEADS,
  FIND_SPACES,
  LOCK_HEADS,
  RESTORE_ENTRIES,
  RESTORE_SESSIONS,
  RESTORE_SPACES,
  RESTORE_USERS,
} from './restore_queries.js'

type LineOf<Kind extends ExportLine['kind']> = Extract<ExportLine, { kind: Kind }>
type EntryLine = LineOf<'event' | 'message'>

/** Lines restored in one transaction. Entries follow one another without gaps, a session's together. */
export interface RestoreBatch {
  users: LineOf<'user'>[]
  learning_spaces: LineOf<'learning_space'>[]
  sessions: LineOf<'session'>[]
  entries: EntryLine[]
}

/** How many lines of a kind were stored, and how many already existed. */
export interface Tally {
  stored: number
  known: number
}

/** A session or learning space that exists in the target with different content. It is left unchanged. */
export interface Conflict {
  kind: 'session' | 'learning_space'
  id: string
  reason: string
}

export interface RestoreOutcome {
  users: Tally
  learning_spaces: Tally
  sessions: Tally
  entries: Tally
  conflicts: Conflict[]
}

/** A session of the batch, as it is in the target. */
interface Target {
  row: Row
  last_seq: number
}

/**
 * Restores a batch inside a transaction. What already exists in the target is compared and left unchanged; if it
 * differs, that is a conflict, and nothing of it is stored. With `dry_run` nothing at all is stored.
 *
 * Entries are only stored after the last seq of a log, and only if all its existing entries were found to be equal,
 * by this batch or earlier ones. So a conflict is known before the first write to its session.
 */
export async function restoreBatch(
  connection: Queryable,
  project_id: string,
  batch: RestoreBatch,
  dry_run: boolean,
): Promise<RestoreOutcome> {
  const conflicts: Conflict[] = []
  const users = await restoreUsers(connection, project_id, batch.users, dry_run)
  const learning_spaces = await restoreSpaces(connection, project_id, batch, conflicts, dry_run)
  const targets = await findTargets(connection, project_id, batch, dry_run)
  const refused = refuseSessions(batch, targets, dry_run)
  const isRestored = ({ session }: ExportLine) => !refused.has(session!.id)
  const known: EntryLine[] = []
  let fresh: EntryLine[] = []
  for (const line of batch.entries.filter(isRestored)) {
    const isKnown = line.record.seq <= (targets.get(line.record.session_id)?.last_seq ?? 0)
    ;(isKnown ? known : fresh).push(line)
  }
  for (const [id, reason] of await findDifferent(connection, project_id, known)) refused.set(id, reason)
  fresh = fresh.filter(isRestored)
  const sessions = batch.sessions.filter(isRestored)
  const newSessions = sessions.filter(({ record }) => !targets.has(record.id))
  if (!dry_run) {
    await restoreSessions(connection, project_id, newSessions)
    await restoreEntries(connection, project_id, fresh)
  }
  for (const [id, reason] of refused) conflicts.push({ kind: 'session', id, reason })
  return {
    users,
    learning_spaces,
    sessions: tally(sessions.length, newSessions.length),
    entries: { stored: fresh.length, known: known.filter(isRestored).length },
    conflicts,
  }
}

async function restoreUsers(
  connection: Queryable,
  project_id: string,
  users: RestoreBatch['users'],
  dry_run: boolean,
): Promise<Tally> {
  if (users.length === 0) return tally(0, 0)
  const [row] = await connection.query(dry_run ? COUNT_NEW_USERS : RESTORE_USERS, [project_id, jsonOf(users)])
  return tally(users.length, Number(row!.stored))
}

async function restoreSpaces(
  connection: Queryable,
  project_id: string,
  { learning_spaces }: RestoreBatch,
  conflicts: Conflict[],
  dry_run: boolean,
): Promise<Tally> {
  if (learning_spaces.length === 0) return tally(0, 0)
  const ids = learning_spaces.map(({ record }) => record.id)
  const found = new Map(
    (await connection.query(FIND_SPACES, [project_id, ids])).map((row) => [row.id!, row] as const),
  )
  const fresh = learning_spaces.filter(({ record }) => !found.has(record.id))
  if (fresh.length > 0 && !dry_run) {
    const stored = await connection.query(RESTORE_SPACES, [project_id, jsonOf(fresh)])
    requireAll(fresh, new Set(stored.map((row) => row.id!)))
  }
  let known = 0
  for (const { record } of learning_spaces) {
    const row = found.get(record.id)
    const reason = row && differenceOf(record, row)
    if (reason) conflicts.push({ kind: 'learning_space', id: record.id, reason })
    else if (row) known += 1
  }
  return { stored: fresh.length, known }
}

/** The batch's sessions that exist, by id; their heads are locked unless nothing will be stored. */
async function findTargets(
  connection: Queryable,
  project_id: string,
  batch: RestoreBatch,
  dry_run: boolean,
): Promise<Map<string, Target>> {
  const ids = [...sessionsOf(batch).keys()]
  if (ids.length === 0) return new Map()
  const rows = await connection.query(dry_run ? FIND_HEADS : LOCK_HEADS, [project_id, ids])
  return new Map(rows.map((row) => [row.id!, { row, last_seq: Number(row.last_seq) }]))
}

/** Sessions that exist with different content, and how they differ. */
function refuseSessions(
  batch: RestoreBatch,
  targets: Map<string, Target>,
  dry_run: boolean,
): Map<string, string> {
  const refused = new Map<string, string>()
  const beginning = new Set(batch.sessions.map(({ record }) => record.id))
  for (const [id, session] of sessionsOf(batch)) {
    const target = targets.get(id)
    const reason = target
      ? differenceOf(session, target.row)
      : // In a dry run the beginning of a long session was not stored either.
        beginning.has(id) || dry_run
        ? undefined
        : 'it was deleted while it was being imported'
    if (reason) refused.set(id, reason)
  }
  return refused
}

function differenceOf(record: OwnRecord | SessionRecord, row: Row): string | undefined {
  if (row.created_at !== record.created_at) return `it was created at another time, ${row.created_at}`
  if (row.user !== record.user) return 'it belongs to another user'
  if (
    'disable_task_tracking' in record &&
    (row.disable_task_tracking === 't') !== record.disable_task_tracking
  )
    return 'it has another disable_task_tracking'
  return undefined
}

async function findDifferent(
  connection: Queryable,
  project_id: string,
  known: EntryLine[],
): Promise<Array<[string, string]>> {
  if (known.length === 0) return []
  const rows = await connection.query(FIND_DIFFERENT_ENTRIES, [project_id, jsonOf(known)])
  return rows.map((row) => [row.session_id!, `it has another entry at seq ${row.seq}`])
}

async function restoreSessions(
  connection: Queryable,
  project_id: string,
  sessions: RestoreBatch['sessions'],
): Promise<void> {
  if (sessions.length === 0) return
  const ids = sessions.map(({ record }) => record.id)
  const [erased] = await connection.query(FIND_REMAINS_OF, [project_id, ids])
  if (erased)
    throw new StartError(
      `Session ${erased.id} was deleted a moment ago, and its log is still being removed. Run the command again in a moment.`,
    )
  const stored = await connection.query(RESTORE_SESSIONS, [project_id, jsonOf(sessions)])
  requireAll(sessions, new Set(stored.map((row) => row.id!)))
}

async function restoreEntries(
  connection: Queryable,
  project_id: string,
  entries: EntryLine[],
): Promise<void> {
  if (entries.length === 0) return
  const sessions = [...new Set(entries.map(({ session }) => session!))]
  const moved = await connection.query(RESTORE_ENTRIES, [
    project_id,
    jsonOf(entries),
    sessions.map(({ id }) => id),
    sessions.map(({ updated_at }) => updated_at),
  ])
  if (moved.length !== sessions.length) throw new Error('a head did not agree with its log')
}

/** @throws StartError for the first line that was not stored; there is only one possible reason */
function requireAll(
  lines: ReadonlyArray<LineOf<'session' | 'learning_space'>>,
  stored: ReadonlySet<string>,
): void {
  const line = lines.find(({ record }) => !stored.has(record.id))
  if (line)
    throw wrongLine(line.number, `no earlier line is that of its user, ${JSON.stringify(line.record.user)}.`)
}

/** The sessions that lines of a batch belong to. */
function sessionsOf({ sessions, entries }: RestoreBatch): Map<string, SessionRecord> {
  return new Map([...sessions, ...entries].map(({ session }) => [session!.id, session!]))
}

function jsonOf(lines: ReadonlyArray<{ text: string }>): string {
  return `[${lines.map(({ text }) => text).join(',')}]`
}

function tally(all: number, stored: number): Tally {
  return { stored, known: all - stored }
}
