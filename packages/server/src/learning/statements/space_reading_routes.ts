import Type from '#typebox'
import { responses } from '../../contract/responses.js'
import { PageOf } from '../../contract/schema.js'
import { answer } from '../../http/answer/answer.js'
import { answerList, readListCursor } from '../../http/answer/page_answer.js'
import type { AppServer } from '../../http/app_server.js'
import { Cursors } from '../../http/request/cursor.js'
import { PAGE_LIMIT_DEFAULT } from '../../limits.js'
import { LearningSpaceParams } from '../learning_space_schema.js'
import { HistoryQuery, SpaceContext, SpaceContextQuery } from './statement_schema.js'
import { findVersions, readSpaceContext } from './statements.js'

/** What a space gives back: statements for a prompt, and what its skills were. */
export function spaceReadingRoutes(app: AppServer): void {
  app.get(
    '/learning_spaces/:learning_space_id/context',
    {
      schema: {
        operationId: 'getSpaceContext',
        summary: 'Read the statements that fit a task',
        description: 'Active statements only, rendered for a prompt, with their ids for feedback.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        querystring: SpaceContextQuery,
        response: responses({
          description: 'The statements.',
          data: SpaceContext,
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async ({ database, project_id, params, query }, reply) => {
      const context = await readSpaceContext(database, project_id, params.learning_space_id, query)
      return answer(reply, JSON.stringify(context))
    },
  )

  app.get(
    '/learning_spaces/:learning_space_id/history',
    {
      schema: {
        operationId: 'getSpaceHistory',
        summary: "Read what a learning space's skills were",
        description: 'Newest first: each change of a SKILL.md, by whom and why.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        querystring: HistoryQuery,
        response: responses({
          description: 'A page of versions.',
          data: PageOf(Type.Ref('SkillVersion')),
          errors: ['learning_space_not_found', 'invalid_cursor'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, params, query } = request
      const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
      const space_id = params.learning_space_id
      const cursors = new Cursors('skill_versions', project_id, true, space_id)
      const position = { after: readListCursor(cursors, cursor), limit }
      const find = () => findVersions(database, project_id, space_id, position)
      return answerList(reply, cursors, find, limit)
    },
  )
}
