import type { Database, Queryable } from '../../postgres/database.js'
import { END_COPIES } from '../../sessions/copy_queries.js'
import { ERASE_REMAINS, ERASE_SESSIONS, FIND_PROJECTS_WITH_REMAINS, FIND_REMAINS } from './erasure_queries.js'

/** Sessions that one transaction takes out at most. */
export const SESSIONS_AT_ONCE_MAX = 100
/** Entries, and keys, that one statement deletes at most: some ten milliseconds' work. */
const ROWS_AT_ONCE_MAX = 2_000

/** What was deleted. A log is numbered without gaps, so its last seq says how many entries it had. */
export interface ErasedSessions {
  sessions: number
  entries: number
}

/** What one transaction did. */
export interface ErasedStep extends ErasedSessions {
  /** Of these, and of copies of them that were being made, those with entries that `eraseRemains` has to delete. */
  remains: string[]
  /** Sessions that had no room in this transaction and are as they were. */
  left: string[]
}

/**
 * Deletes sessions with their logs: the one place where a session is deleted. Each is there or gone as a whole for
 * everybody, in short transactions of a bounded number of rows, so that appends to other sessions wait for none
 * and those to these wait briefly and are then refused. With `untouched_since`, a session that was touched at or
 * after that time, though it be while this runs, stays. `onStep` is told what went with each transaction, `onSlice`
 * of each slice of a long log behind that; what they throw ends the work, and a later run goes on with it.
 */
export async function eraseSessions(
  database: Database,
  project_id: string,
  ids: string[],
  options: {
    untouched_since?: string
    onStep?: (step: ErasedSessions) => void
    onSlice?: () => void
  } = {},
): Promise<ErasedSessions> {
  const erased = { sessions: 0, entries: 0 }
  const add = (step: ErasedSessions) => {
    erased.sessions += step.sessions
    erased.entries += step.entries
    options.onStep?.(step)
  }
  for (let rest = ids; rest.length > 0; ) {
    const some = rest.slice(0, SESSIONS_AT_ONCE_MAX)
    const step = await database.transaction((connection) =>
      eraseSome(connection, project_id, some, options.untouched_since),
    )
    add(step)
    for (const id of step.remains) await eraseRemains(database, project_id, id, options.onSlice)
    rest = [...step.left, ...rest.slice(some.length)]
  }
  return erased
}

/**
 * One transaction's part of deleting sessions, SESSIONS_AT_ONCE_MAX at most; the caller goes on with what is left
 * once it is committed.
 */
export async function eraseSome(
  connection: Queryable,
  project_id: string,
  ids: string[],
  untouched_since?: string,
): Promise<ErasedStep> {
  const locked = await connection.query(ERASE_SESSIONS.lock, [project_id, ids, untouched_since ?? null])
  const heads = locked.map((row) => ({ id: row.id!, last_seq: Number(row.last_seq) }))
  const long = heads.filter(({ last_seq }) => last_seq > ROWS_AT_ONCE_MAX)
  const short: typeof heads = []
  const left: string[] = []
  let rows = 0
  for (const head of heads.filter(({ last_seq }) => last_seq <= ROWS_AT_ONCE_MAX)) {
    if (rows + head.last_seq > ROWS_AT_ONCE_MAX) {
      left.push(head.id)
      continue
    }
    short.push(head)
    rows += head.last_seq
  }
  const whole = short.map(({ id }) => id)
  const remains = long.map(({ id }) => id)
  const gone = [...whole, ...remains]
  const copies = []
  if (gone.length > 0) {
    await connection.query(ERASE_SESSIONS.heads, [project_id, gone])
    await connection.query(ERASE_SESSIONS.entries, [project_id, whole])
    await connection.query(ERASE_SESSIONS.keys, [project_id, whole])
    if (long.length > 0) {
      const last_seqs = long.map(({ last_seq }) => last_seq)
      await connection.query(ERASE_SESSIONS.remains, [project_id, remains, last_seqs])
    }
    await connection.query(ERASE_SESSIONS.terms, [project_id, gone])
    await connection.query(ERASE_SESSIONS.sessions, [project_id, gone])
    // What goes must not live on in a copy that is made of it.
    copies.push(...(await connection.query(END_COPIES.of_sources, [project_id, gone])))
  }
  const entries = [...short, ...long].reduce((sum, { last_seq }) => sum + last_seq, 0)
  return { sessions: gone.length, entries, remains: [...remains, ...copies.map(({ id }) => id!)], left }
}

/** Deletes the entries of a session that is gone, in slices. Any number of processes may do it at once. */
export async function eraseRemains(
  database: Queryable,
  project_id: string,
  session_id: string,
  onSlice: () => void = () => {},
): Promise<void> {
  const session = [project_id, session_id]
  for (let last_seq = 1; last_seq > 0; ) {
    const [row] = await database.query(ERASE_REMAINS.entries, [...session, ROWS_AT_ONCE_MAX])
    if (!row) return
    last_seq = Number(row.last_seq)
    onSlice()
  }
  for (let keys = ROWS_AT_ONCE_MAX; keys === ROWS_AT_ONCE_MAX; ) {
    keys = (await database.query(ERASE_REMAINS.keys, [...session, ROWS_AT_ONCE_MAX])).length
  }
  await database.query(ERASE_REMAINS.done, session)
}

/** Deletes what others have left of a project's deleted sessions, because they were killed or stopped. */
export async function eraseRemainsOf(
  database: Queryable,
  project_id: string,
  signal?: AbortSignal,
): Promise<void> {
  for (let found = SESSIONS_AT_ONCE_MAX; found === SESSIONS_AT_ONCE_MAX; ) {
    const remains = await database.query(FIND_REMAINS, [project_id, SESSIONS_AT_ONCE_MAX])
    for (const { id } of remains)
      await eraseRemains(database, project_id, id!, () => signal?.throwIfAborted())
    found = remains.length
  }
}

/** The projects where others have left something of deleted sessions. */
export async function findProjectsWithRemains(database: Queryable): Promise<string[]> {
  return (await database.query(FIND_PROJECTS_WITH_REMAINS, [])).map((row) => row.id!)
}
