import { mergedTooLarge, notFound } from '../errors.js'
import { newId } from '../ids.js'
import { MERGED_BYTES_MAX } from '../limits.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import { type Created, createOnce } from '../log/create_once.js'
import type { Database, Queryable, Tenant } from '../postgres/database.js'
import { call } from '../postgres/stored_function.js'
import { CREATE_LEARNING_SPACE, MERGE_META, READ_LEARNING_SPACE } from './learning_space_queries.js'

/** A request to create a learning space. `body` is the JSON as sent; meta is taken from it. */
export interface LearningSpaceRequest {
  project_id: string
  user: string | undefined
  body: string
  idempotency: IdempotencyKey | undefined
}

/** Creates a learning space, and its user if new. @throws AnnalsError idempotency_key_reused */
export function createLearningSpace(database: Queryable, request: LearningSpaceRequest): Promise<Created> {
  const { project_id, user, body, idempotency } = request
  return createOnce(database, project_id, idempotency, async () => {
    const { key = null, request_hash = null } = idempotency ?? {}
    const space = [newId(), user ?? null, newId(), body, key, request_hash]
    return (await call(database, CREATE_LEARNING_SPACE, project_id, ...space)) ?? undefined
  })
}

/** A learning space as JSON text. @throws AnnalsError learning_space_not_found */
export async function readLearningSpace({ database, project_id }: Tenant, id: string): Promise<string> {
  const [row] = await database.query(READ_LEARNING_SPACE, [project_id, id])
  if (!row) throw notFound('learning_space')
  return row.json!
}

/**
 * Merges the body's meta into a space's, at the top level; null deletes a key. Returns the merged space.
 * @throws AnnalsError learning_space_not_found, payload_too_large
 */
export async function mergeMeta(
  { database, project_id }: Tenant<Database>,
  id: string,
  body: string,
): Promise<string> {
  const answer = await call(database, MERGE_META, project_id, id, body, MERGED_BYTES_MAX)
  if (answer === null) throw notFound('learning_space')
  if (answer === '') throw mergedTooLarge('meta')
  return answer
}
