import { spaceContext } from '@annals/learning'
import Type from '#typebox'
import { PageOf } from '../../contract/schema.js'
import { answerList, readListCursor } from '../../http/answer/page_answer.js'
import { allOf, operationsOf } from '../../http/operation.js'
import { Cursors } from '../../http/request/cursor.js'
import { PAGE_LIMIT_DEFAULT } from '../../limits.js'
import { LearningSpaceParams } from '../learning_space_schema.js'
import { HistoryQuery, SpaceContext, SpaceContextQuery } from './statement_schema.js'
import { findVersions, LENGTH_AT_ONCE, readActiveStatements } from './statements.js'

const operation = operationsOf('Learning spaces')

/** What a space gives back: statements for a prompt, and what its skills were. */
export const spaceReadingRoutes = allOf(
  operation({
    call: 'GET /learning_spaces/:learning_space_id/context',
    id: 'getSpaceContext',
    summary: 'Read the statements that fit a task',
    description: 'Active statements only, rendered for a prompt, with their ids for feedback.',
    params: LearningSpaceParams,
    querystring: SpaceContextQuery,
    returns: 'The statements.',
    data: SpaceContext,
    errors: ['learning_space_not_found'],
    json: async (request, _reply, { thread }) => {
      const { project_id, params, query } = request
      const { q = '', max_tokens = 1_000 } = query
      const statements = await readActiveStatements(request, params.learning_space_id)
      const length = statements.reduce((sum, { text }) => sum + text.length, q.length)
      const isShort = length <= LENGTH_AT_ONCE
      return JSON.stringify(
        isShort
          ? spaceContext(statements, q, max_tokens)
          : await thread.run(project_id, 'spaceContext', statements, q, max_tokens),
      )
    },
  }),

  operation({
    call: 'GET /learning_spaces/:learning_space_id/history',
    id: 'getSpaceHistory',
    summary: "Read what a learning space's skills were",
    description: 'Newest first: each change of a SKILL.md, by whom and why.',
    params: LearningSpaceParams,
    querystring: HistoryQuery,
    returns: 'A page of versions.',
    data: PageOf(Type.Ref('SkillVersion')),
    errors: ['learning_space_not_found', 'invalid_cursor'],
    handle: async (request, reply) => {
      const { project_id, params, query } = request
      const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
      const space_id = params.learning_space_id
      const cursors = new Cursors('skill_versions', project_id, true, space_id)
      const position = { after: readListCursor(cursors, cursor), limit }
      const find = () => findVersions(request, space_id, position)
      return answerList(reply, cursors, find, limit)
    },
  }),
)
