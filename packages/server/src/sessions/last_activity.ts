import type { Consumer } from '@annals/kits/changes/consumer.js'
import { ACTIVITY_IS_BEHIND, ADD_ACTIVITY, DROP_ACTIVITY, ERASE_ACTIVITY } from './last_activity_queries.js'

/**
 * Keeps the order of sessions by their last activity. An append cannot: with an index on it, updating a head would no
 * longer be HOT, and would have to write to the index of each term that a session is found by.
 */
export const LAST_ACTIVITY: Consumer = {
  name: 'last_activity',
  sessions_max: 500,
  readsEntries: false,
  isBehind: ACTIVITY_IS_BEHIND,
  erase: [ERASE_ACTIVITY],
  forget: [DROP_ACTIVITY],
  consume: async ({ project_id, sessions }) => {
    const ids = sessions.map(({ session_id }) => session_id)
    const times = sessions.map(({ updated_at }) => updated_at)
    return async (connection) => {
      await connection.query(DROP_ACTIVITY, [project_id, ids])
      await connection.query(ADD_ACTIVITY.statement, [project_id, ids, times])
    }
  },
}
