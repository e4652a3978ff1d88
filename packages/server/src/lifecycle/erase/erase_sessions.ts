import type { Database, Queryable } from '../../postgres/database.js'
import { END_COPIES } from '../../sessions/copy_queries.js'
import { ERASE_REMAINS, ERASE_SESSIONS, FIND_PROJECTS_WITH_REMAINS, FIND_REMAINS } from './erasure_queries.js'

/** Most sessions that one transaction removes. */
export const SESSIONS_AT_ONCE_MAX = 100
/** Most entries, and keys, that one statement deletes: some ten milliseconds of work. */
const ROWS_AT_ONCE_MAX = 2_000

/** What was deleted. A log has no gaps, so its last seq is its number of entries. */
export interface ErasedSessions {
  sessions: number
  entries: number
}

/** The result of one transaction. */
export interface ErasedStep extends ErasedSessions {
  /** Those of these, and of unfinished copies of them, that have entries left for `eraseRemains` to delete. */
  remains: string[]
  /** Sessions that did not fit into this transaction and are unchanged. */
  left: string[]
}

/**
 * Deletes sessions with their logs; the only place where sessions are deleted. For everybody else, each is either
 * there or gone as a whole. It uses short transactions of a bounded number of rows: appends to other sessions do not
 * wait, and appends to these wait briefly and are then refused. With `untouched_since`, a session that was touched at
 * or after that time is kept, even if touched meanwhile. `onStep` is called with what each transaction deleted,
 * `onSlice` for each slice of a long log after that; what they throw ends the work, and a later run continues it.
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
 * One transaction's part of deleting sessions, SESSIONS_AT_ONCE_MAX at most; after the commit, the caller continues
 * with the rest.
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
  const copies: string[] = []
  if (gone.length > 0) {
    await connection.query(ERASE_SESSIONS.heads, [project_id, gone])
    await connection.query(ERASE_SESSIONS.entries, [project_id, whole])
    await connection.query(ERASE_SESSIONS.keys, [project_id, whole])
    if (long.length > 0) {
      const last_seqs = long.map(({ last_seq }) => last_seq)
      await connection.query(ERASE_SESSIONS.remains, [project_id, remains, last_seqs])
    }
    await connection.query(ERASE_SESSIONS.marks, [project_id, gone])
    await connection.query(ERASE_SESSIONS.activity, [project_id, gone])
    await connection.query(ERASE_SESSIONS.terms, [project_id, gone])
    await connection.query(ERASE_SESSIONS.sessions, [project_id, gone])
    // Deleted data must not survive in a copy that is being made of it.
    const [ended] = await connection.query(END_COPIES.of_sources.statement, [project_id, gone])
    copies.push(...(ended!.answer?.split(',') ?? []))
  }
  const entries = [...short, ...long].reduce((sum, { last_seq }) => sum + last_seq, 0)
  return { sessions: gone.length, entries, remains: [...remains, ...copies], left }
}

/** Deletes the entries of a deleted session, in slices. Any number of processes may do this at once. */
export async function eraseRemains(
  database: Queryable,
  project_id: string,
  session_id: string,
  onSlice: () => void = () => {},
): Promise<void> {
  const session = [project_id, session_id]
  for (let last_seq = 1; last_seq > 0; ) {
    const [row] = await database.query(ERASE_REMAINS.entries, [...session, ROWS_AT_ONCE_MAX])
    if (row!.answer === null) return
    last_seq = Number(row!.answer)
    onSlice()
  }
  for (let keys = ROWS_AT_ONCE_MAX; keys === ROWS_AT_ONCE_MAX; ) {
    keys = (await database.query(ERASE_REMAINS.keys, [...session, ROWS_AT_ONCE_MAX])).length
  }
  await database.query(ERASE_REMAINS.done, session)
}

/** Deletes what killed or stopped processes left of a project's deleted sessions. */
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

/** The projects with such remains. */
export async function findProjectsWithRemains(database: Queryable): Promise<string[]> {
  return (await database.query(FIND_PROJECTS_WITH_REMAINS, [])).map((row) => row.id!)
}
