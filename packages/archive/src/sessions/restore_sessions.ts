import { StartError } from '@annals/kits/errors.js'
import type { Row, Tenant } from '@annals/kits/postgres/database.js'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { RETRACTION_TYPE } from 'annals/dist/log/append/append_request.js'
import { FIND_REMAINS_OF } from 'annals/dist/sessions/erase/erasure_queries.js'
import { type ExportLine, wrongLine } from '../transfer/export_line.js'
import {
  differenceOf,
  jsonOf,
  type RestoreContext,
  type Tallies,
  tally,
} from '../transfer/restore_context.js'
import {
  CHECK_COMPACTION,
  FIND_CIRCLE,
  FIND_DIFFERENT_ENTRIES,
  FIND_HEADS,
  LOCK_HEADS,
  RESTORE_ENTRIES,
  RESTORE_ERASED,
  RESTORE_RETRACTIONS,
  RESTORE_SESSIONS,
} from './restore_queries.js'
import type { EntryRecord, SessionRecord } from './session_lines.js'

interface SessionLine extends ExportLine {
  session: SessionRecord
}
type EntryLine = SessionLine & { entry: EntryRecord }

/** Lines restored in one transaction. Entries follow one another without gaps, a session's together. */
interface SessionBatch {
  sessions: SessionLine[]
  entries: EntryLine[]
}

interface Target {
  row: Row
  last_seq: number
}

/**
 * Restores sessions and entries inside a transaction. What the target has already is compared and left as it is; what it
 * has otherwise is a conflict, and nothing of it is stored. With `dry_run` nothing at all is stored.
 *
 * Entries are only stored after the last seq of a log, and only if all its existing entries were found to be equal,
 * by this batch or earlier ones. So a conflict is known before the first write to its session.
 */
export async function restoreSessionLines(context: RestoreContext, lines: ExportLine[]): Promise<Tallies> {
  const { database, project_id, dry_run, conflicts } = context
  const erased = lines.filter(({ kind }) => kind === 'erased_session')
  if (erased.length > 0 && !dry_run) await database.query(RESTORE_ERASED, [project_id, jsonOf(erased)])
  const batch = batchOf(lines.filter(({ kind }) => kind !== 'erased_session'))
  const targets = await findTargets(context, batch, dry_run)
  const refused = refuseSessions(batch, targets, dry_run)
  const isRestored = ({ session }: SessionLine) => !refused.has(session.id)
  const known: EntryLine[] = []
  let fresh: EntryLine[] = []
  for (const line of batch.entries.filter(isRestored)) {
    const isKnown = line.entry.seq <= (targets.get(line.entry.session_id)?.last_seq ?? 0)
    ;(isKnown ? known : fresh).push(line)
  }
  for (const [id, reason] of await findDifferent(context, known)) refused.set(id, reason)
  for (const [id, reason] of findUnchained(fresh.filter(isRestored), targets)) refused.set(id, reason)
  fresh = fresh.filter(isRestored)
  const sessions = batch.sessions.filter(isRestored)
  const newSessions = sessions.filter(({ session }) => !targets.has(session.id))
  if (!dry_run) {
    await restoreSessions(context, newSessions)
    await restoreEntries(context, fresh)
    await restoreRetractions(context, fresh)
    await checkCompactions(context, fresh)
  }
  await refuseCircles(context, newSessions)
  for (const [id, reason] of refused) conflicts.push({ kind: 'session', id, reason })
  const bytes = fresh.reduce((sum, { entry }) => sum + entry.bytes, 0)
  return {
    sessions: tally(sessions.length, newSessions.length),
    entries: { stored: fresh.length, known: known.filter(isRestored).length, bytes },
  }
}

/** Sessions in which an entry without a link would follow one that has one: nobody could verify such a chain. */
function findUnchained(fresh: EntryLine[], targets: Map<string, Target>): Map<string, string> {
  const found = new Map<string, string>()
  const chained = new Set([...targets].filter(([, { row }]) => row.is_chained === 't').map(([id]) => id))
  for (const { entry } of fresh) {
    if (entry.proof !== undefined) chained.add(entry.session_id)
    else if (chained.has(entry.session_id) && !found.has(entry.session_id))
      found.set(
        entry.session_id,
        `entry ${entry.seq} has no link of the chain that the entries before it have: export the session again, with annals export of this version`,
      )
  }
  return found
}

function batchOf(lines: ExportLine[]): SessionBatch {
  const batch: SessionBatch = { sessions: [], entries: [] }
  for (const line of lines) {
    const session = line.followed as SessionRecord
    if (line.kind === 'session') batch.sessions.push({ ...line, session })
    else batch.entries.push({ ...line, session, entry: line.record as unknown as EntryRecord })
  }
  return batch
}

/** The batch's sessions that exist, by id; their heads are locked unless nothing will be stored. */
async function findTargets(
  { database, project_id }: Tenant,
  batch: SessionBatch,
  dry_run: boolean,
): Promise<Map<string, Target>> {
  const ids = [...sessionsOf(batch).keys()]
  if (ids.length === 0) return new Map()
  const rows = await database.query(dry_run ? FIND_HEADS : LOCK_HEADS, [project_id, ids])
  return new Map(rows.map((row) => [row.id!, { row, last_seq: Number(row.last_seq) }]))
}

/** Sessions that exist with different content, and how they differ. */
function refuseSessions(
  batch: SessionBatch,
  targets: Map<string, Target>,
  dry_run: boolean,
): Map<string, string> {
  const refused = new Map<string, string>()
  const beginning = new Set(batch.sessions.map(({ session }) => session.id))
  for (const [id, session] of sessionsOf(batch)) {
    const target = targets.get(id)
    const reason = target
      ? differenceOf({ ...session }, target.row, ['created_at', 'user', 'disable_task_tracking'])
      : // In a dry run the beginning of a long session was not stored either.
        beginning.has(id) || dry_run
        ? undefined
        : 'it was deleted while it was being imported'
    if (reason) refused.set(id, reason)
  }
  return refused
}

async function findDifferent(
  { database, project_id }: Tenant,
  known: EntryLine[],
): Promise<Array<[string, string]>> {
  if (known.length === 0) return []
  const rows = await database.query(FIND_DIFFERENT_ENTRIES, [project_id, jsonOf(known)])
  return rows.map((row) => [row.session_id!, `it has another entry at seq ${row.seq}`])
}

async function restoreSessions({ database, project_id }: Tenant, sessions: SessionLine[]): Promise<void> {
  if (sessions.length === 0) return
  const stored = await database.query(RESTORE_SESSIONS, [project_id, jsonOf(sessions)])
  requireAll(sessions, new Set(stored.map((row) => row.id!)))
  // After the sessions are inserted: whoever reserves one of their ids from now on waits for this transaction.
  const ids = sessions.map(({ session }) => session.id)
  const [reserved] = await database.query(FIND_REMAINS_OF, [project_id, ids])
  if (reserved)
    throw new StartError(
      `Session ${reserved.id} was deleted a moment ago, and its log is still being removed. Run the command again in a moment.`,
    )
}

/** @throws StartError where a session that the target had already stands below one of these, and that below it */
async function refuseCircles({ database, project_id }: Tenant, sessions: SessionLine[]): Promise<void> {
  if (!sessions.some(({ session }) => session.parent_id)) return
  const ids = sessions.map(({ session }) => session.id)
  const parents = sessions.map(({ session }) => session.parent_id ?? null)
  const [found] = await database.query(FIND_CIRCLE, [project_id, ids, parents])
  const line = sessions.find(({ session }) => session.id === found?.id)
  if (line)
    throw wrongLine(line.number, 'parent_id must not be a session that stands below it in the database.')
}

async function restoreEntries({ database, project_id }: Tenant, entries: EntryLine[]): Promise<void> {
  if (entries.length === 0) return
  const sessions = [...new Set(entries.map(({ session }) => session))]
  const moved = await database.query(RESTORE_ENTRIES, [
    project_id,
    jsonOf(entries),
    sessions.map(({ id }) => id),
    sessions.map(({ updated_at }) => updated_at),
  ])
  if (moved.length !== sessions.length) throw new Error('a head did not agree with its log')
}

/** @throws StartError for the first line that was not stored; there is only one possible reason */
function requireAll(lines: readonly SessionLine[], stored: ReadonlySet<string>): void {
  const line = lines.find(({ session }) => !stored.has(session.id))
  if (line)
    throw wrongLine(line.number, `no earlier line is that of its user, ${JSON.stringify(line.session.user)}.`)
}

function sessionsOf({ sessions, entries }: SessionBatch): Map<string, SessionRecord> {
  return new Map([...sessions, ...entries].map(({ session }) => [session.id, session]))
}

/** Marks what restored entries retract. */
async function restoreRetractions(
  { database, project_id }: Tenant,
  entries: ReadonlyArray<{ entry: EntryRecord }>,
): Promise<void> {
  const retracted = entries.flatMap(({ entry }) =>
    retractedSeqs(entry).map((seq) => ({ session_id: entry.session_id, seq, by: entry.seq })),
  )
  if (retracted.length === 0) return
  await database.query(RESTORE_RETRACTIONS, [
    project_id,
    retracted.map(({ session_id }) => session_id),
    retracted.map(({ seq }) => String(seq)),
    retracted.map(({ by }) => String(by)),
  ])
}

/**
 * Checks that the newest compaction of each session covers what it says it does; it covers what earlier ones do.
 * @throws StartError for the first that does not
 */
async function checkCompactions({ database, project_id }: Tenant, entries: EntryLine[]): Promise<void> {
  const newest = new Map<string, EntryLine>()
  for (const line of entries) {
    const { type, retracted_by, session_id } = line.entry
    if (type === COMPACTION_TYPE && retracted_by === undefined) newest.set(session_id, line)
  }
  for (const [session_id, { number, entry }] of newest) {
    const [row] = await database.query(CHECK_COMPACTION, [project_id, session_id, entry.seq])
    if (row?.agrees === 'f')
      throw wrongLine(
        number,
        'its digest is not that of the entries from from_seq to to_seq: one of them was changed.',
      )
  }
}

/** The entries that an entry retracts. An event of that type may also be a caller's from before there were retractions. */
function retractedSeqs({ type, seq, data }: EntryRecord): number[] {
  const { seqs } = data as { seqs?: unknown }
  if (type !== RETRACTION_TYPE || !Array.isArray(seqs)) return []
  return seqs.filter((one) => Number.isInteger(one) && one > 0 && one < seq)
}
