import type { Erasure } from '../../lifecycle/erase/erasure.js'
import type { Database } from '../../postgres/database.js'
import { FIND_DUE, MOVE_DUE } from '../expiry_queries.js'

const DUE_AT_ONCE_MAX = 500
/** The rest waits for the next round. */
const LOOKS_A_ROUND_MAX = 200

/**
 * Deletes the sessions whose `expires_in_s` has passed since they were last touched, with those below them. That they have
 * expired is looked at again under the lock. If none is due, it costs one look at an index.
 */
export async function eraseExpired(
  database: Database,
  erasure: Erasure,
  signal: AbortSignal,
  onErased: (project_id: string, sessions: number, entries: number) => void,
): Promise<void> {
  for (let look = 0; look < LOOKS_A_ROUND_MAX; look++) {
    const due = await database.query(FIND_DUE, [DUE_AT_ONCE_MAX])
    for (const project_id of new Set(due.map((row) => row.project_id!))) {
      const ids = due.filter((row) => row.project_id === project_id).map((row) => row.id!)
      const { sessions = 0, entries = 0 } = await erasure.erase(database, project_id, 'session', ids, {
        only_expired: true,
        onStep: () => signal.throwIfAborted(),
        onSlice: () => signal.throwIfAborted(),
      })
      if (sessions > 0) onErased(project_id, sessions, entries)
      await database.query(MOVE_DUE, [project_id, ids])
    }
    if (due.length < DUE_AT_ONCE_MAX) return
  }
}
