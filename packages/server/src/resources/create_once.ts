import type { Queryable } from '../database/database.js'
import { isForeignKeyViolation, isTransient, isUniqueViolation } from '../database/database_errors.js'
import { FIND_IDEMPOTENCY_KEY } from '../database/queries/idempotency_keys.js'
import { keyReused } from '../errors.js'
import type { IdempotencyKey } from '../log/append_request.js'

const ATTEMPTS_MAX = 10

/** A resource as JSON text. `replayed`: an earlier request with the same key had made it. */
export interface Created {
  json: string
  replayed: boolean
}

/**
 * Creates a resource at most once for an idempotency key. `create` is one statement that stores the resource
 * and the key together; it gives undefined, or a violation, when another request got in between (it made the
 * same user, used the same key, erased the user), and then it is asked again with a fresh view.
 */
export async function createOnce(
  database: Queryable,
  project_id: string,
  idempotency: IdempotencyKey | undefined,
  create: () => Promise<string | undefined>,
): Promise<Created> {
  for (let attempt = 1; ; attempt++) {
    const answer = idempotency && (await findAnswer(database, project_id, idempotency))
    if (answer !== undefined) return { json: answer, replayed: true }
    try {
      const json = await create()
      if (json !== undefined) return { json, replayed: false }
    } catch (error) {
      const raced = isUniqueViolation(error) || isForeignKeyViolation(error) || isTransient(error)
      if (!raced || attempt >= ATTEMPTS_MAX) throw error
    }
    if (attempt >= ATTEMPTS_MAX)
      throw new Error('a resource could not be created: other requests kept getting in between')
  }
}

async function findAnswer(
  database: Queryable,
  project_id: string,
  idempotency: IdempotencyKey,
): Promise<string | undefined> {
  const [row] = await database.query(FIND_IDEMPOTENCY_KEY, [project_id, idempotency.key])
  if (!row) return undefined
  if (row.request_hash !== idempotency.request_hash) throw keyReused()
  return row.answer ?? undefined
}
