import type { Module } from '@annals/kits/module.js'

/** Users, who come to be with the first thing that is theirs. */
export const USERS_MODULE: Module = {
  name: 'users',
  open: (kits) => ({ routes: async () => (await import('./user_routes.js')).userRoutes(kits) }),
  tables: [
    {
      name: 'users',
      kind: 'user',
      key: ['id'],
      columns: { id: 'uuid', identifier: 'identifier', created_at: 'time', updated_at: 'time' },
      erased_with: 'project',
      counted: false,
      exported: true,
      checks: {},
    },
  ],
}
