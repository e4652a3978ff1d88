import { createOnce } from './create_once.js'
import type { Database, Queryable } from './database/database.js'
import type { ListPosition } from './database/queries/keyset.js'
import {
  COMPARE_SESSION,
  CREATE_SESSION,
  DELETE_SESSION,
  listSessions,
  READ_SESSION,
} from './database/queries/sessions.js'
import { FIND_USER } from './database/queries/users.js'
import { AnnalsError } from './errors.js'
import { newId } from './ids.js'
import type { IdempotencyKey } from './log/append_request.js'

/** What a caller asks for when creating a session. `body` is the JSON as sent: configs are taken from it. */
export interface SessionRequest {
  project_id: string
  user: string | undefined
  use_uuid: string | undefined
  body: string
  idempotency: IdempotencyKey | undefined
}

/**
 * Creates a session. With `use_uuid` of a session that exists already and agrees, gives that one.
 * @throws AnnalsError session_exists, idempotency_key_reused
 */
export async function createSession(
  database: Database,
  request: SessionRequest,
): Promise<{ json: string; replayed: boolean; existed: boolean }> {
  const { project_id, use_uuid, user, body, idempotency } = request
  let existed = false
  const created = await createOnce(database, project_id, idempotency, async () => {
    const existing = use_uuid && (await findAgreeing(database, request, use_uuid))
    if (existing) {
      existed = true
      return existing
    }
    const [row] = await database.query(CREATE_SESSION, [
      project_id,
      use_uuid ?? newId(),
      user ?? null,
      newId(),
      body,
      idempotency?.key ?? null,
      idempotency?.request_hash ?? null,
    ])
    return row?.json ?? undefined
  })
  return { ...created, existed }
}

async function findAgreeing(
  database: Queryable,
  request: SessionRequest,
  use_uuid: string,
): Promise<string | undefined> {
  const [row] = await database.query(COMPARE_SESSION, [
    request.project_id,
    use_uuid,
    request.user ?? null,
    request.body,
  ])
  if (row && row.agrees !== 't') {
    throw new AnnalsError(
      'session_exists',
      'This project has a session with that use_uuid already, with another user, configs or disable_task_tracking.',
    )
  }
  return row?.json ?? undefined
}

/** A session as JSON text. @throws AnnalsError session_not_found */
export async function readSession(
  database: Queryable,
  project_id: string,
  session_id: string,
): Promise<string> {
  const [row] = await database.query(READ_SESSION, [project_id, session_id])
  if (!row) throw sessionNotFound()
  return row.json!
}

/** Deletes a session with its log. @throws AnnalsError session_not_found */
export async function deleteSession(
  database: Database,
  project_id: string,
  session_id: string,
): Promise<void> {
  await database.transaction(async (connection) => {
    const session = [project_id, session_id]
    await connection.query(DELETE_SESSION.entries, session)
    const heads = await connection.query(DELETE_SESSION.head, session)
    if (heads.length === 0) throw sessionNotFound()
    await connection.query(DELETE_SESSION.entries, session)
    await connection.query(DELETE_SESSION.keys, session)
    await connection.query(DELETE_SESSION.session, session)
  })
}

/** The answer for a session that does not exist, and for one of another project. */
export function sessionNotFound(): AnnalsError {
  return new AnnalsError('session_not_found', 'There is no such session in this project.')
}

/** One row of a list: the resource as JSON, and where it stands in the list's order. */
export interface Listed {
  json: string
  created_at: string
  id: string
}

/** A page of sessions, one more than `limit` if there are more. */
export async function findSessions(
  database: Queryable,
  filter: { project_id: string; user?: string | undefined; configs?: string | undefined },
  position: ListPosition,
): Promise<Listed[]> {
  const user = await findOwner(database, filter)
  if (user === 'nobody') return []
  const { statement, parameters } = listSessions({ ...filter, user_id: user?.id }, position)
  return (await database.query(statement, parameters)) as unknown as Listed[]
}

/** The user that a list is filtered by: undefined when it is not, `nobody` when no user has the identifier. */
export async function findOwner(
  database: Queryable,
  filter: { project_id: string; user?: string | undefined },
): Promise<{ id: string } | undefined | 'nobody'> {
  if (filter.user === undefined) return undefined
  const [row] = await database.query(FIND_USER, [filter.project_id, filter.user])
  return row ? { id: row.id! } : 'nobody'
}
