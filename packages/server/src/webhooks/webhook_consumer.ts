import { FINISH_CHANGES } from '../changes/change_queries.js'
import type { Consumer } from '../changes/consumer.js'
import { ADD_DELIVERIES, WEBHOOKS_ARE_BEHIND } from './delivery_queries.js'

export const WEBHOOKS = 'webhooks'

/**
 * Turns changed sessions into deliveries: notes up to which seq each webhook of the project is to be told of them.
 * `onDeliveries` hears of the webhooks.
 */
export function webhookConsumer(
  onDeliveries: (project_id: string, webhook_ids: Set<string>) => void,
): Consumer {
  return {
    name: WEBHOOKS,
    sessions_max: 500,
    // Deliveries read the entries, when it is their turn.
    readsEntries: false,
    isBehind: WEBHOOKS_ARE_BEHIND,
    // Deliveries go with their webhooks.
    erase: [],
    consume: async ({ project_id, sessions }) => {
      const ids = sessions.map(({ session_id }) => session_id)
      const after = sessions.map(({ after_seq }) => after_seq)
      const last = sessions.map(({ last_seq }) => last_seq)
      return async (connection) => {
        const added = await connection.query(ADD_DELIVERIES, [project_id, ids, after, last])
        await connection.query(FINISH_CHANGES.cursors, [project_id, WEBHOOKS, ids, last])
        onDeliveries(project_id, new Set(added.map(({ webhook_id }) => webhook_id!)))
      }
    },
  }
}
