import { type Created, createOnce } from './create_once.js'
import type { Queryable } from './database/database.js'
import { CREATE_LEARNING_SPACE, READ_LEARNING_SPACE } from './database/queries/learning_spaces.js'
import { AnnalsError } from './errors.js'
import { newId } from './ids.js'
import type { IdempotencyKey } from './log/append_request.js'

/** What a caller asks for when creating a learning space. `body` is the JSON as sent: meta is taken from it. */
export interface LearningSpaceRequest {
  project_id: string
  user: string | undefined
  body: string
  idempotency: IdempotencyKey | undefined
}

/** Creates a learning space, and its user on first use. @throws AnnalsError idempotency_key_reused */
export function createLearningSpace(database: Queryable, request: LearningSpaceRequest): Promise<Created> {
  const { project_id, user, body, idempotency } = request
  return createOnce(database, project_id, idempotency, async () => {
    const [row] = await database.query(CREATE_LEARNING_SPACE, [
      project_id,
      newId(),
      user ?? null,
      newId(),
      body,
      idempotency?.key ?? null,
      idempotency?.request_hash ?? null,
    ])
    return row?.json ?? undefined
  })
}

/** A learning space as JSON text. @throws AnnalsError learning_space_not_found */
export async function readLearningSpace(
  database: Queryable,
  project_id: string,
  id: string,
): Promise<string> {
  const [row] = await database.query(READ_LEARNING_SPACE, [project_id, id])
  if (!row) throw learningSpaceNotFound()
  return row.json!
}

/** The answer for a space that does not exist, and for one of another project. */
export function learningSpaceNotFound(): AnnalsError {
  return new AnnalsError('learning_space_not_found', 'There is no such learning space in this project.')
}
