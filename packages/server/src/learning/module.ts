import type { Config } from '@annals/kits/configuration/config.js'
import type { Module } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import type { ModelAddress } from '@annals/learning'
import { BLOBS_MODULE } from '../blobs/module.js'
import { LOG_MODULE } from '../log/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { autoCompaction } from './compaction/auto_compaction.js'
import * as compactions from './compaction/auto_compaction_queries.js'
import * as spaces from './learning_space_queries.js'
import { LEARNING_TABLES } from './learning_tables.js'
import { findErrorsOnThread } from './learning_work.js'
import * as calls from './model/call_queries.js'
import { LANES_WAIT } from './model/lane_queries.js'
import { Learner } from './model/learner.js'
import { openAiModel } from './model/openai_model.js'
import { learnByRules } from './rules/learn_by_rules.js'
import * as rules from './rules/rule_queries.js'
import * as sessions from './sessions/space_session_queries.js'
import * as skills from './skills/skill_queries.js'
import * as statements from './statements/statement_queries.js'

/** Learning spaces: they take in sessions of a project or of one of its users, and give back cited statements. */
export const LEARNING_MODULE: Module = {
  name: 'learning',
  open: (kits, opened) => {
    const { config, thread, background, memory } = kits
    const { usage } = opened(PROJECTS_MODULE)
    const { urls } = opened(BLOBS_MODULE)
    return {
      routes: async () =>
        (await import('./learning_space_routes.js')).learningRoutes({ ...kits, usage, urls }),
      consumers: [
        learnByRules(config.model !== undefined, findErrorsOnThread(thread)),
        autoCompaction(background.database),
      ],
      background: () =>
        new Learner({
          ...background,
          ask: openAiModel(config.model_ms_max),
          nearest: (project_id, ...texts) => thread.run(project_id, 'nearestStatements', ...texts),
          ms_max: config.model_ms_max,
          address: addressOf(config),
          project_tokens_max: config.model_tokens_per_day_max,
          summarise: async (parts, task) => {
            const { takeSummaryTurn } = await import('./compaction/summary_turn.js')
            // The log is opened after this module, whose rows its erasures take first.
            const { appender } = opened(LOG_MODULE)
            await takeSummaryTurn({ ...parts, thread, memory, appender, usage }, task)
          },
        }),
    }
  },
  functions: functionsIn(calls, compactions, rules, sessions, skills, spaces, statements),
  tables: [
    {
      name: spaces.SPACE_LIST.table,
      waits: LANES_WAIT,
      kind: 'learning_space',
      key: ['id'],
      columns: { id: 'uuid', user_id: 'user?', created_at: 'time', updated_at: 'time', meta: 'object' },
      erased_with: 'user',
      order: ['created_at', 'id'],
      document: spaces.SPACE_LIST.document,
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
