import type { Module } from '../module.js'
import { DELIVERIES_WAIT } from './webhook_queries.js'

/** Where projects are told of new entries. Exports have no webhooks: their secrets stay here. */
export const WEBHOOKS_MODULE: Module = {
  name: 'webhooks',
  routes: async () => (await import('./webhook_routes.js')).WEBHOOK_ROUTES,
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
