import type { Module } from '../http/module.js'
import { CREATE_LEARNING_SPACE, MERGE_META, SPACE_LIST } from './learning_space_queries.js'

/** Learning spaces: places for what is learnt, of a project or one of its users. */
export const LEARNING_MODULE: Module = {
  name: 'learning',
  routes: async () => (await import('./all_learning_routes.js')).LEARNING_ROUTES,
  functions: [CREATE_LEARNING_SPACE, MERGE_META],
  tables: [
    {
      name: SPACE_LIST.table,
      kind: 'learning_space',
      key: ['id'],
      columns: { id: 'uuid', user_id: 'user?', created_at: 'time', updated_at: 'time', meta: 'object' },
      erased_with: 'user',
      order: ['created_at', 'id'],
      document: SPACE_LIST.document,
      counted: true,
      exported: true,
      unchanging: ['created_at', 'user'],
      checks: {},
    },
  ],
}
