import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../database/database.js'
import { isForeignKeyViolation, isTransient, isUniqueViolation } from '../database/database_errors.js'
import { FIND_IDEMPOTENCY_KEY } from '../database/queries/idempotency_keys.js'
import { AnnalsError, keyReused } from '../errors.js'
import type { IdempotencyKey } from '../log/append_request.js'

const ATTEMPTS_MAX = 20
const PAUSE_MS = 5

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
      if (!isUniqueViolation(error) && !isForeignKeyViolation(error) && !isTransient(error)) throw error
    }
    if (attempt >= ATTEMPTS_MAX) {
      throw new AnnalsError(
        'unavailable',
        'Too many concurrent requests for the same user or key. Nothing was stored; retry shortly.',
      )
    }
    // Not at once, and not all at the same time: whoever got in between is likely still at it.
    await sleep(Math.random() * PAUSE_MS * attempt)
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
