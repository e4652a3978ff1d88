import type { Consumer } from '@annals/kits/changes/consumer.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import {
  AWAIT_SUMMARIES,
  ERASE_AUTO_COMPACTIONS,
  FIND_LONG_CONTEXTS,
  HOLD_SESSIONS,
} from './auto_compaction_queries.js'

/**
 * Finds sessions whose contexts have passed `auto_compact_tokens` of their project; the learner has the model write
 * summaries for them. Appends pay for no more than a mark.
 */
export function autoCompaction(database: Queryable): Consumer {
  return {
    name: 'compaction',
    sessions_max: 100,
    readsEntries: false,
    isBehind: `(SELECT o.total_tokens FROM session_heads o WHERE o.project_id = $1 AND o.session_id = h.session_id) > (SELECT j.auto_compact_tokens FROM projects j WHERE j.id = $1)
      AND NOT EXISTS (SELECT FROM auto_compactions a WHERE a.project_id = $1 AND a.session_id = h.session_id)`,
    erase: [ERASE_AUTO_COMPACTIONS],
    consume: async ({ project_id, sessions }) => {
      const ids = plainArray(sessions.map(({ session_id }) => session_id))
      const long = await database.query(FIND_LONG_CONTEXTS, [project_id, ids])
      if (long.length === 0) return undefined
      return async (connection) => {
        const wanted = plainArray(long.map(({ session_id }) => session_id!))
        const held = await connection.query(HOLD_SESSIONS, [project_id, wanted])
        const there = new Set(held.map(({ session_id }) => session_id!))
        const waiting = long.filter(({ session_id }) => there.has(session_id!))
        const due = [
          plainArray(waiting.map(({ session_id }) => session_id!)),
          plainArray(waiting.map(({ tokens }) => tokens!)),
        ]
        if (waiting.length > 0) await connection.query(AWAIT_SUMMARIES.statement, [project_id, ...due])
        return long.flatMap(({ session_id }) => (there.has(session_id!) ? [] : [session_id!]))
      }
    },
  }
}
