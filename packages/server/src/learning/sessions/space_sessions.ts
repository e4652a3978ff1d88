import { keepConsumer } from '@annals/kits/changes/project_consumers.js'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import { listWhole, readResource } from '@annals/kits/lists/tenant_resource.js'
import type { Database, Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import {
  ATTACH_SESSION,
  LEARNING_CONSUMER,
  LIST_SPACE_SESSIONS,
  READ_POLICY,
  READ_SPACE_SESSION,
} from './space_session_queries.js'

const ROWS_AT_ONCE = 500

const REFUSALS: Readonly<Record<string, () => AnnalsError>> = {
  no_space: () => notFound('learning_space'),
  no_session: () => notFound('session'),
  other_user: () => new AnnalsError('user_mismatch'),
  known: () => new AnnalsError('session_in_space'),
}

/**
 * Has a space learn from a session. Returns the record as JSON.
 * @throws AnnalsError learning_space_not_found, session_not_found, user_mismatch, session_in_space
 */
export async function attachSession(
  tenant: Tenant<Database>,
  space_id: string,
  { session_id, now = false }: { session_id: string; now?: boolean },
): Promise<string> {
  const { database, project_id } = tenant
  await keepConsumer(tenant, LEARNING_CONSUMER)
  const answer = await call(database, ATTACH_SESSION, project_id, space_id, session_id, newId(), now)
  const refusal = REFUSALS[answer!]
  if (refusal) throw refusal()
  return answer!
}

export async function readSpaceSession(
  { database, project_id }: Tenant,
  space_id: string,
  session_id: string,
): Promise<string> {
  const [row] = await database.query(READ_SPACE_SESSION, [project_id, space_id, session_id])
  if (row) return row.json!
  await readPolicy({ database, project_id }, space_id)
  throw notFound('space_session')
}

export async function* listSpaceSessions(tenant: Tenant, space_id: string): AsyncGenerator<string> {
  await readPolicy(tenant, space_id)
  yield* listWhole(tenant, space_id, LIST_SPACE_SESSIONS, ROWS_AT_ONCE)
}

/** The policy of a space as JSON; the default one if none was set. @throws AnnalsError learning_space_not_found */
export function readPolicy(tenant: Tenant, space_id: string): Promise<string> {
  return readResource(tenant, 'learning_space', READ_POLICY, space_id)
}
