import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Tenant } from '@annals/kits/postgres/database.js'
import {
  isForeignKeyViolation,
  isTransient,
  isUniqueViolation,
} from '@annals/kits/postgres/database_errors.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { requireProject } from '../projects/projects.js'
import { FIND_IDEMPOTENCY_KEY } from './append/append_queries.js'
import type { IdempotencyKey } from './append/append_request.js'
import { END_COPIES } from './unfinished_copy_queries.js'

const ATTEMPTS_MAX = 20
const PAUSE_MS = 5
/** How often to check whether the first request with the same key has finished. */
const UNFINISHED_PAUSE_MS = 250

/** A resource as JSON text. `replayed`: an earlier request with the same key created it. */
export interface Created {
  json: string
  replayed: boolean
}

/**
 * Creates a resource at most once for an idempotency key. `create` stores the resource and the key's answer together.
 * It returns undefined, or a violation, if another request got in between (created the same user, used the same key,
 * erased the user), and is then called again with a fresh snapshot. A key without an answer belongs to a long request
 * that is still in flight.
 */
export async function createOnce(
  tenant: Tenant,
  idempotency: IdempotencyKey | undefined,
  create: () => Promise<string | undefined>,
): Promise<Created> {
  for (let attempt = 1; ; attempt++) {
    const earlier = idempotency && (await findAnswer(tenant, idempotency))
    if (typeof earlier?.answer === 'string') return { json: earlier.answer, replayed: true }
    if (earlier) {
      await call(tenant.database, END_COPIES.abandoned, tenant.project_id, [earlier.owner_id])
      if (attempt >= ATTEMPTS_MAX)
        throw new AnnalsError(
          'unavailable',
          'The first request with this Idempotency-Key is still in progress. Retry later for its answer.',
        )
      await sleep(UNFINISHED_PAUSE_MS)
      continue
    }
    try {
      const json = await create()
      if (json !== undefined) return { json, replayed: false }
    } catch (error) {
      if (isForeignKeyViolation(error)) await requireProject(tenant)
      else if (!isUniqueViolation(error) && !isTransient(error)) throw error
    }
    if (attempt >= ATTEMPTS_MAX) {
      throw new AnnalsError(
        'unavailable',
        'Too many concurrent requests for the same user or key. Nothing was stored; retry shortly.',
      )
    }
    // After a random pause: the request that got in between is probably not finished yet.
    await sleep(Math.random() * PAUSE_MS * attempt)
  }
}

/** The answer to an earlier request with the same key; null while it is in flight. */
async function findAnswer(
  { database, project_id }: Tenant,
  idempotency: IdempotencyKey,
): Promise<{ answer: string | null; owner_id: string } | undefined> {
  const [row] = await database.query(FIND_IDEMPOTENCY_KEY, [project_id, idempotency.key])
  if (!row) return undefined
  if (row.request_hash !== idempotency.request_hash) throw new AnnalsError('idempotency_key_reused')
  return { answer: row.answer!, owner_id: row.owner_id! }
}
