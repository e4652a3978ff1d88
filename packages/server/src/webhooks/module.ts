import type { Module } from '@annals/kits/module.js'
import { RUNS_MODULE } from '../runs/module.js'
import { Deliveries } from './deliveries.js'
import { ADD_DELIVERIES, DELIVERIES_WAIT } from './webhook_queries.js'
import { webhookConsumer } from './webhooks.js'

/** Where projects are told of new entries. Exports have no webhooks: their secrets stay here. */
export const WEBHOOKS_MODULE: Module = {
  name: 'webhooks',
  open: (kits, opened) => {
    const { config, background } = kits
    let deliveries: Deliveries | undefined
    opened(RUNS_MODULE).tellOfInput((...added) => deliveries?.added(...added))
    return {
      routes: async () => (await import('./webhook_routes.js')).webhookRoutes(kits),
      consumers: [webhookConsumer((...added) => deliveries?.added(...added))],
      background: () => {
        const to_private = config.webhooks_to_private === 'true'
        deliveries = new Deliveries({ ...background, to_private })
        return deliveries
      },
    }
  },
  functions: [ADD_DELIVERIES],
  tables: [
    {
      name: 'webhooks',
      kind: 'webhook',
      key: ['id'],
      columns: { id: 'uuid', created_at: 'time' },
      erased_with: 'project',
      counted: false,
      exported: false,
      checks: {},
    },
    {
      name: 'webhook_deliveries',
      waits: DELIVERIES_WAIT,
      handled:
        'With their webhook in all respects, by a foreign key; those of a session that is gone end by themselves.',
    },
  ],
}
