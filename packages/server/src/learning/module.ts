import type { Module } from '../http/module.js'
import { CREATE_LEARNING_SPACE, MERGE_META, SPACE_LIST } from './learning_space_queries.js'
import { LEARNING_TABLES } from './learning_tables.js'
import { learnByRules } from './rules/learn_by_rules.js'
import { LEARN_BY_RULES } from './rules/rule_queries.js'
import { ATTACH_SESSION, SET_POLICY } from './sessions/space_session_queries.js'
import { ADD_FEEDBACK, ADD_STATEMENT, ERASE_CITES } from './statements/statement_queries.js'

/** Learning spaces: they take in sessions of a project or of one of its users, and give back cited statements. */
export const LEARNING_MODULE: Module = {
  name: 'learning',
  routes: async () => (await import('./all_learning_routes.js')).LEARNING_ROUTES,
  consumers: () => [learnByRules(false)],
  functions: [
    ADD_FEEDBACK,
    ADD_STATEMENT,
    ATTACH_SESSION,
    CREATE_LEARNING_SPACE,
    ERASE_CITES,
    LEARN_BY_RULES,
    MERGE_META,
    SET_POLICY,
  ],
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
    ...LEARNING_TABLES,
  ],
}
