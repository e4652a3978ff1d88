import type { Logger } from 'pino'
import { IDEMPOTENCY_KEPT_HOURS } from '../../limits.js'
import { FORGET_IDEMPOTENCY_KEYS } from '../../log/append/idempotency_queries.js'
import type { Database } from '../../postgres/database.js'
import { describeError } from '../../postgres/database_errors.js'
import { LIST_PROJECTS } from '../../projects/project_queries.js'

const EVERY_MS = 60 * 60 * 1000
const KEYS_AT_ONCE_MAX = 1_000

/**
 * Deletes expired idempotency keys every hour, one project and one bounded batch at a time, so that locks are short.
 * Every node does it; doing it twice is harmless.
 */
export function forgetOldKeys(database: Database, logger: Logger): { stop(): Promise<void> } {
  let stopped = false
  let running: Promise<void> = Promise.resolve()
  const sweep = async () => {
    try {
      for (const { id } of await database.query(LIST_PROJECTS, [])) {
        let forgotten = KEYS_AT_ONCE_MAX
        while (forgotten === KEYS_AT_ONCE_MAX && !stopped) {
          forgotten = (
            await database.query(FORGET_IDEMPOTENCY_KEYS, [id!, IDEMPOTENCY_KEPT_HOURS, KEYS_AT_ONCE_MAX])
          ).length
        }
      }
    } catch (error) {
      logger.warn({ err: describeError(error) }, 'old idempotency keys could not be deleted; will retry')
    }
  }
  const timer = setInterval(() => {
    running = running.then(sweep)
  }, EVERY_MS)
  timer.unref()
  return {
    stop: () => {
      stopped = true
      clearInterval(timer)
      return running
    },
  }
}
