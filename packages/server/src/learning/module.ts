import type { Config } from '../configuration/config.js'
import type { Module } from '../http/module.js'
import { CREATE_LEARNING_SPACE, MERGE_META, SPACE_LIST } from './learning_space_queries.js'
import { LEARNING_TABLES } from './learning_tables.js'
import { BEGIN_CALL } from './model/call_queries.js'
import { APPLY_DELTA } from './model/delta_queries.js'
import { Learner } from './model/learner.js'
import type { ModelAddress } from './model/model_port.js'
import { openAiModel } from './model/openai_model.js'
import { learnByRules } from './rules/learn_by_rules.js'
import { LEARN_BY_RULES } from './rules/rule_queries.js'
import { ATTACH_SESSION, SET_POLICY } from './sessions/space_session_queries.js'
import { CREATE_SKILL, INCLUDE_SKILL } from './skills/skill_queries.js'
import { ADD_FEEDBACK, ADD_STATEMENT, ERASE_CITES } from './statements/statement_queries.js'

/** Learning spaces: they take in sessions of a project or of one of its users, and give back cited statements. */
export const LEARNING_MODULE: Module = {
  name: 'learning',
  routes: async () => (await import('./all_learning_routes.js')).LEARNING_ROUTES,
  consumers: ({ model }, { findErrors }) => [learnByRules(model !== undefined, findErrors)],
  background: ({ config, database, signal, logger, thread }) =>
    new Learner({
      database,
      signal,
      logger,
      ask: openAiModel(config.model_ms_max),
      nearest: (project_id, ...texts) => thread.run(project_id, 'nearestStatements', ...texts),
      ms_max: config.model_ms_max,
      address: addressOf(config),
      project_tokens_max: config.model_tokens_per_day_max,
    }),
  functions: [
    ADD_FEEDBACK,
    ADD_STATEMENT,
    APPLY_DELTA,
    ATTACH_SESSION,
    BEGIN_CALL,
    CREATE_LEARNING_SPACE,
    CREATE_SKILL,
    ERASE_CITES,
    INCLUDE_SKILL,
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

function addressOf({ model_url: url, model: name, model_key: key }: Config): ModelAddress | undefined {
  return url === undefined || name === undefined ? undefined : { url, name, key }
}
