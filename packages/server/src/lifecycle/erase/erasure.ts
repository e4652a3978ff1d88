import { notFound } from '../../errors.js'
import type { Database, Queryable } from '../../postgres/database.js'
import { isForeignKeyViolation } from '../../postgres/database_errors.js'
import type { Statement } from '../../postgres/statement.js'
import { ERASE_ACTIVITY } from '../../sessions/last_activity_queries.js'
import { DELETE_USER, LOCK_USER } from '../../users/user_queries.js'
import {
  eraseRemains,
  eraseRemainsOf,
  eraseSessions,
  eraseSome,
  SESSIONS_AT_ONCE_MAX,
} from './erase_sessions.js'
import { ERASE_LEARNING_SPACES, ERASE_PROJECT, FIND_OWNED } from './erasure_queries.js'

/** What was removed with a user. */
export interface Erased {
  sessions: number
  entries: number
  learning_spaces: number
}

/** Most users, and keys, that one statement deletes. */
const ROWS_AT_ONCE_MAX = 1_000
/** Most learning spaces that one transaction deletes: each may have 256 terms. */
const SPACES_AT_ONCE_MAX = 100
const ATTEMPTS_MAX = 10

/** Deletes a session with its log. @throws AnnalsError session_not_found */
export async function deleteSession(
  database: Database,
  project_id: string,
  session_id: string,
): Promise<void> {
  const { sessions } = await eraseSessions(database, project_id, [session_id])
  if (sessions === 0) throw notFound('session')
}

/** Deletes a learning space. @throws AnnalsError learning_space_not_found */
export async function deleteLearningSpace(
  database: Database,
  project_id: string,
  space_id: string,
): Promise<void> {
  await database.transaction(async (connection) => {
    if ((await eraseLearningSpaces(connection, project_id, [space_id])) === 0)
      throw notFound('learning_space')
  })
}

/**
 * Erases a user with all its data, in short transactions; the last one deletes the user itself. If it is interrupted,
 * the rest still belongs to the user, and erasing again continues. @throws AnnalsError user_not_found
 */
export async function eraseUser(database: Database, project_id: string, identifier: string): Promise<Erased> {
  const erased = { sessions: 0, entries: 0, learning_spaces: 0 }
  for (let isFirst = true; ; isFirst = false) {
    const step = await database.transaction((connection) =>
      eraseSomeOfUser(connection, project_id, identifier),
    )
    // A concurrent erasure of the same user may have deleted the last of it.
    if (!step && isFirst) throw notFound('user')
    if (!step) return erased
    for (const key of ['sessions', 'entries', 'learning_spaces'] as const) erased[key] += step[key]
    for (const id of step.remains) await eraseRemains(database, project_id, id)
    if (step.isLast) return erased
  }
}

/**
 * Erases a bounded piece of a user's data, and the user itself after the last piece. While it holds the user's row,
 * nothing new can be created for the user, so each round finds less than the one before. Undefined: there is no such
 * user.
 */
async function eraseSomeOfUser(connection: Queryable, project_id: string, identifier: string) {
  const [user] = await connection.query(LOCK_USER, [project_id, identifier])
  if (!user) return undefined
  const owner = [project_id, user.id!]
  const find = async (statement: Statement, max: number) =>
    (await connection.query(statement, [...owner, max])).map((row) => row.id!)
  const sessions = await find(FIND_OWNED.sessions, SESSIONS_AT_ONCE_MAX)
  const step = await eraseSome(connection, project_id, sessions)
  const spaces = await find(FIND_OWNED.learning_spaces, SPACES_AT_ONCE_MAX)
  const learning_spaces = await eraseLearningSpaces(connection, project_id, spaces)
  const isLast =
    sessions.length < SESSIONS_AT_ONCE_MAX && step.left.length === 0 && spaces.length < SPACES_AT_ONCE_MAX
  if (isLast) await connection.query(DELETE_USER, owner)
  return { ...step, learning_spaces, isLast }
}

/**
 * Erases a project. Its tokens are deleted first, so that no new request gets in; then its data, in bounded pieces.
 * What requests in flight add meanwhile prevents the deletion of the project's row, and is removed in another round.
 * @throws AnnalsError project_not_found
 */
export async function eraseProject(database: Database, project_id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await database.query(ERASE_PROJECT.api_keys, [project_id])
    await eraseSessionsOfProject(database, project_id)
    await eraseLearningSpacesOfProject(database, project_id)
    for (const rows of ['keys', 'marks', 'cursors', 'consumers'] as const)
      await eraseAll(database, project_id, ERASE_PROJECT[rows])
    await eraseAll(database, project_id, ERASE_ACTIVITY)
    try {
      await eraseAll(database, project_id, ERASE_PROJECT.users)
      const removed = await database.query(ERASE_PROJECT.project, [project_id])
      if (removed.length === 0) throw notFound('project')
      return
    } catch (error) {
      if (!isForeignKeyViolation(error) || attempt >= ATTEMPTS_MAX) throw error
    }
  }
}

async function eraseSessionsOfProject(database: Database, project_id: string): Promise<void> {
  for (;;) {
    const some = await database.query(ERASE_PROJECT.some_sessions, [project_id, SESSIONS_AT_ONCE_MAX])
    if (some.length === 0) break
    await eraseSessions(
      database,
      project_id,
      some.map((row) => row.id!),
    )
  }
  await eraseRemainsOf(database, project_id)
}

async function eraseLearningSpacesOfProject(database: Database, project_id: string): Promise<void> {
  for (;;) {
    const some = await database.query(ERASE_PROJECT.some_learning_spaces, [project_id, SPACES_AT_ONCE_MAX])
    if (some.length === 0) return
    const ids = some.map((row) => row.id!)
    await database.transaction((connection) => eraseLearningSpaces(connection, project_id, ids))
  }
}

async function eraseAll(database: Queryable, project_id: string, some: Statement): Promise<void> {
  for (let gone = ROWS_AT_ONCE_MAX; gone === ROWS_AT_ONCE_MAX; ) {
    gone = (await database.query(some, [project_id, ROWS_AT_ONCE_MAX])).length
  }
}

async function eraseLearningSpaces(
  connection: Queryable,
  project_id: string,
  ids: string[],
): Promise<number> {
  for (const step of ['lock', 'keys', 'terms'] as const)
    await connection.query(ERASE_LEARNING_SPACES[step], [project_id, ids])
  return (await connection.query(ERASE_LEARNING_SPACES.spaces, [project_id, ids])).length
}
