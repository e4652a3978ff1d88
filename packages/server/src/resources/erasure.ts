import type { Database, Queryable } from '../database/database.js'
import { isForeignKeyViolation } from '../database/database_errors.js'
import {
  ERASE_LEARNING_SPACES,
  ERASE_PROJECT,
  ERASE_SESSIONS,
  FIND_OWNED,
} from '../database/queries/erasure.js'
import { DELETE_USER, LOCK_USER } from '../database/queries/users.js'
import { notFound } from '../errors.js'

/** What was removed with a user. */
export interface Erased {
  sessions: number
  entries: number
  learning_spaces: number
}

const SESSIONS_AT_ONCE_MAX = 500
const ATTEMPTS_MAX = 10

/** Deletes a session with its log. @throws AnnalsError session_not_found */
export async function deleteSession(
  database: Database,
  project_id: string,
  session_id: string,
): Promise<void> {
  await database.transaction(async (connection) => {
    const { sessions } = await eraseSessions(connection, project_id, [session_id])
    if (sessions === 0) throw notFound('session')
  })
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

/** Erases a user and everything of the user's, in one transaction. @throws AnnalsError user_not_found */
export async function eraseUser(database: Database, project_id: string, identifier: string): Promise<Erased> {
  return database.transaction(async (connection) => {
    const [user] = await connection.query(LOCK_USER, [project_id, identifier])
    if (!user) throw notFound('user')
    const owner = [project_id, user.id!]
    const sessions = (await connection.query(FIND_OWNED.sessions, owner)).map((row) => row.id!)
    const erased = { sessions: 0, entries: 0, learning_spaces: 0 }
    const chunks = chunked(sessions)
    // All the entries first: they take long, and no head is locked yet that appends would wait for.
    for (const ids of chunks) {
      erased.entries += await countOf(connection.query(ERASE_SESSIONS.entries, [project_id, ids]))
    }
    for (const ids of chunks) {
      const some = await eraseSessions(connection, project_id, ids)
      erased.sessions += some.sessions
      erased.entries += some.entries
    }
    const spaces = (await connection.query(FIND_OWNED.learning_spaces, owner)).map((row) => row.id!)
    erased.learning_spaces = await eraseLearningSpaces(connection, project_id, spaces)
    await connection.query(DELETE_USER, owner)
    return erased
  })
}

/**
 * Erases a project. Its tokens go first, so that no new request gets in; then its data, in bounded pieces; what
 * requests under way add meanwhile keeps the project's row from going, and is removed in another round.
 * @throws AnnalsError project_not_found
 */
export async function eraseProject(database: Database, project_id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await database.query(ERASE_PROJECT.api_keys, [project_id])
    await eraseSessionsOfProject(database, project_id)
    for (const step of [ERASE_PROJECT.learning_spaces, ERASE_PROJECT.keys])
      await database.query(step, [project_id])
    try {
      await database.query(ERASE_PROJECT.users, [project_id])
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
    if (some.length === 0) return
    const ids = some.map((row) => row.id!)
    await database.transaction((connection) => eraseSessions(connection, project_id, ids))
  }
}

function chunked(ids: string[]): string[][] {
  const chunks: string[][] = []
  for (let from = 0; from < ids.length; from += SESSIONS_AT_ONCE_MAX)
    chunks.push(ids.slice(from, from + SESSIONS_AT_ONCE_MAX))
  return chunks
}

async function eraseSessions(
  connection: Queryable,
  project_id: string,
  ids: string[],
): Promise<{ sessions: number; entries: number }> {
  const parameters = [project_id, ids]
  let entries = await countOf(connection.query(ERASE_SESSIONS.entries, parameters))
  await connection.query(ERASE_SESSIONS.heads, parameters)
  entries += await countOf(connection.query(ERASE_SESSIONS.entries, parameters))
  await connection.query(ERASE_SESSIONS.keys, parameters)
  return { sessions: await countOf(connection.query(ERASE_SESSIONS.sessions, parameters)), entries }
}

async function eraseLearningSpaces(
  connection: Queryable,
  project_id: string,
  ids: string[],
): Promise<number> {
  await connection.query(ERASE_LEARNING_SPACES.keys, [project_id, ids])
  return countOf(connection.query(ERASE_LEARNING_SPACES.spaces, [project_id, ids]))
}

async function countOf(rows: Promise<Array<Record<string, string | null>>>): Promise<number> {
  return Number((await rows)[0]!.count)
}
