import { AnnalsError, mergedTooLarge, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import { MERGED_BYTES_MAX } from '@annals/kits/limits.js'
import { changeResource } from '@annals/kits/lists/tenant_resource.js'
import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { fencedError } from '../log/append/held_back.js'
import { createOnce } from '../log/create_once.js'
import { type Room, withinRoom } from '../projects/usage.js'
import { FIND_REMAINS_OF } from './erase/erasure_queries.js'
import { SET_EXPIRY } from './expiry_queries.js'
import {
  COMPARE_SESSION,
  CREATE_SESSION,
  MERGE_CONFIGS,
  READ_SESSION,
  REPLACE_CONFIGS,
} from './session_queries.js'

export interface SessionRequest {
  project_id: string
  user: string | undefined
  use_uuid: string | undefined
  body: string
  idempotency: IdempotencyKey | undefined
  /** The quota that a new session must fit into; unlimited by default. */
  room?: Room
}

/**
 * Creates a session. If `use_uuid` is an existing session with the same values, returns that one.
 * @throws AnnalsError session_not_found (the parent), session_exists, idempotency_key_reused, quota_exceeded
 */
export async function createSession(
  database: Queryable,
  request: SessionRequest,
): Promise<{ json: string; replayed: boolean; existed: boolean }> {
  const { project_id, use_uuid, user, body, idempotency, room = {} } = request
  let existed = false
  const created = await createOnce({ database, project_id }, idempotency, async () => {
    const existing = use_uuid && (await findAgreeing(database, request, use_uuid))
    if (existing) {
      existed = true
      return existing
    }
    if (use_uuid !== undefined) await refuseWhileReserved({ database, project_id }, use_uuid)
    return withinRoom(room, { sessions: 1 }, async () => {
      const session = [use_uuid ?? newId(), user ?? null, newId(), body]
      const { key = null, request_hash = null } = idempotency ?? {}
      const answer = await call(database, CREATE_SESSION, project_id, ...session, key, request_hash)
      if (answer === '')
        throw new AnnalsError('session_not_found', '/parent is not a session of this project.')
      if (answer !== null) room.made?.({ sessions: 1 })
      return answer ?? undefined
    })
  })
  return { ...created, existed }
}

async function findAgreeing(
  database: Queryable,
  request: SessionRequest,
  use_uuid: string,
): Promise<string | undefined> {
  const { project_id, user = null, body } = request
  const [row] = await database.query(COMPARE_SESSION, [project_id, use_uuid, user, body])
  if (row && row.agrees !== 't') {
    throw new AnnalsError(
      'session_exists',
      'A session with that use_uuid already exists, with another user, parent, expires_in_s, configs or disable_task_tracking. Send the same values, or choose another id.',
    )
  }
  return row?.json ?? undefined
}

/**
 * While an id's old log is being deleted, or a long copy with the id is in progress, the id cannot have a new session.
 * @throws AnnalsError unavailable
 */
export async function refuseWhileReserved({ database, project_id }: Tenant, use_uuid: string): Promise<void> {
  if ((await database.query(FIND_REMAINS_OF, [project_id, [use_uuid]])).length > 0) {
    throw new AnnalsError(
      'unavailable',
      'The session with that use_uuid was deleted a moment ago, and its log is still being deleted, or it is a copy in progress. Nothing was stored; retry shortly.',
    )
  }
}

/** A session with its run. @throws AnnalsError session_not_found */
export async function readSession({ database, project_id }: Tenant, session_id: string): Promise<string> {
  const [row] = await database.query(READ_SESSION, [project_id, session_id])
  if (!row) throw notFound('session')
  return row.run === null ? row.json! : `${row.json!.slice(0, -1)},"run":${row.run}}`
}

/** Sets or removes a session's `expires_in_s`, as the body says. Returns the session. @throws AnnalsError session_not_found */
export function setExpiry(tenant: Tenant, session_id: string, body: string): Promise<string> {
  return changeResource(tenant, 'session', SET_EXPIRY, session_id, body)
}

/** Replaces a session's configs. `fence`: see Annals-Fence. @throws AnnalsError session_not_found, fenced */
export async function replaceConfigs(
  tenant: Tenant,
  session_id: string,
  body: string,
  fence: number | undefined,
): Promise<void> {
  const change = [fence ?? null, body, null]
  refuseFenced(await changeResource(tenant, 'session', REPLACE_CONFIGS, session_id, ...change), fence)
}

/** As PostgreSQL writes json; configs are jsonb, which has no space before the colon. */
const FENCED = '{"refused" : "fenced"'

function refuseFenced(answer: string, fence: number | undefined): void {
  if (answer.startsWith(FENCED)) throw fencedError((JSON.parse(answer) as { fence: number }).fence, fence)
}

/**
 * Merges the body's configs into a session's, at the top level; null deletes a key. Returns the merged configs.
 * @throws AnnalsError session_not_found, fenced, payload_too_large
 */
export async function mergeConfigs(
  tenant: Tenant,
  session_id: string,
  body: string,
  fence: number | undefined,
): Promise<string> {
  const change = [fence ?? null, body, MERGED_BYTES_MAX]
  const answer = await changeResource(tenant, 'session', MERGE_CONFIGS, session_id, ...change)
  refuseFenced(answer, fence)
  if (answer === '') throw mergedTooLarge('configs')
  return answer
}
