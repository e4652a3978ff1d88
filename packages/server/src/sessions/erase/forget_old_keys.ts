import { IDEMPOTENCY_KEPT_HOURS } from '../../limits.js'
import { FORGET_IDEMPOTENCY_KEYS } from '../../log/append/idempotency_queries.js'
import type { Database } from '../../postgres/database.js'
import { LIST_PROJECTS } from '../../projects/project_queries.js'

const KEYS_AT_ONCE_MAX = 1_000

/** Deletes expired idempotency keys, one project and one bounded batch at a time, so that locks are short. */
export async function forgetOldKeys(database: Database, signal: AbortSignal): Promise<void> {
  for (const { id } of await database.query(LIST_PROJECTS, [])) {
    for (let forgotten = KEYS_AT_ONCE_MAX; forgotten === KEYS_AT_ONCE_MAX; ) {
      signal.throwIfAborted()
      const old = [id!, IDEMPOTENCY_KEPT_HOURS, KEYS_AT_ONCE_MAX]
      forgotten = (await database.query(FORGET_IDEMPOTENCY_KEYS, old)).length
    }
  }
}
