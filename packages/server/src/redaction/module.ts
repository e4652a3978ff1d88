import type { Module } from '@annals/kits/module.js'
import { ADD_MASKS } from './mask_queries.js'

export const REDACTION_MODULE: Module = {
  name: 'redaction',
  open: (kits) => ({
    routes: async () => (await import('./redaction_routes.js')).redactionRoutes(kits),
  }),
  functions: [ADD_MASKS],
  tables: [
    {
      name: 'redaction_masks',
      kind: 'redaction_mask',
      key: ['session_id', 'name', 'number'],
      columns: { session_id: 'uuid', name: 'text', number: 'bigint', digest: 'text' },
      erased_with: 'session',
      counted: false,
      exported: 'in_backups',
      is_derived: true,
      checks: {},
    },
  ],
}
