import { mergedTooLarge } from '../errors.js'
import { newId } from '../ids.js'
import { MERGED_BYTES_MAX } from '../limits.js'
import { changeResource, readResource } from '../lists/tenant_resource.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { type Created, createOnce } from '../log/create_once.js'
import type { Queryable, Tenant } from '../postgres/database.js'
import { call } from '../postgres/stored_function.js'
import { CREATE_LEARNING_SPACE, MERGE_META, READ_LEARNING_SPACE } from './learning_space_queries.js'

export interface LearningSpaceRequest {
  project_id: string
  user: string | undefined
  body: string
  idempotency: IdempotencyKey | undefined
}

export function createLearningSpace(database: Queryable, request: LearningSpaceRequest): Promise<Created> {
  const { project_id, user, body, idempotency } = request
  return createOnce({ database, project_id }, idempotency, async () => {
    const { key = null, request_hash = null } = idempotency ?? {}
    const space = [newId(), user ?? null, newId(), body, key, request_hash]
    return (await call(database, CREATE_LEARNING_SPACE, project_id, ...space)) ?? undefined
  })
}

export function readLearningSpace(tenant: Tenant, id: string): Promise<string> {
  return readResource(tenant, 'learning_space', READ_LEARNING_SPACE, id)
}

/**
 * Merges the body's meta into a space's, at the top level; null deletes a key. Returns the merged space.
 * @throws AnnalsError learning_space_not_found, payload_too_large
 */
export async function mergeMeta(tenant: Tenant, id: string, body: string): Promise<string> {
  const answer = await changeResource(tenant, 'learning_space', MERGE_META, id, body, MERGED_BYTES_MAX)
  if (answer === '') throw mergedTooLarge('meta')
  return answer
}
