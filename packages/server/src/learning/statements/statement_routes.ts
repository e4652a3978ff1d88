import { PageOf } from '@annals/kits/contract/schema.js'
import { sentField, withFields } from '@annals/kits/http/answer/answer.js'
import { answerPage, Cursors } from '@annals/kits/http/answer/page_answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import type { Kits } from '@annals/kits/module.js'
import { spaceContext } from '@annals/learning'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { mayRead } from '../../projects/authenticate.js'
import { LEARNING_BODIES } from '../learning_bodies.js'
import { HistoryQuery, ListStatementsQuery, SpaceContext, SpaceContextQuery } from './statement_schema.js'
import {
  addFeedback,
  addStatement,
  changeStatement,
  findStatements,
  findVersions,
  LENGTH_AT_ONCE,
  readActiveStatements,
} from './statements.js'

const operation = operationsOf('Learning spaces')

export const statementRoutes = ({ thread }: Pick<Kits, 'thread'>) =>
  allOf(
    operation({
      call: 'GET /learning_spaces/:learning_space_id/statements',
      id: 'listStatements',
      summary: 'List the statements of a learning space',
      description: 'In order of `created_at`, each with the entries it cites.',
      querystring: ListStatementsQuery,
      returns: 'A page of statements.',
      data: PageOf(Type.Ref('Statement')),
      handle: async (request, reply) => {
        const { database, project_id, params, query } = request
        const { time_desc = false, state, kind, skill } = query
        const filter = { project_id, learning_space_id: params.learning_space_id, state, kind, skill }
        const cursors = new Cursors('statements', project_id, time_desc, JSON.stringify(filter))
        return answerPage(reply, cursors, query, (position) => findStatements(database, filter, position))
      },
    }),

    operation({
      call: 'POST /learning_spaces/:learning_space_id/statements',
      id: 'addStatement',
      body: LEARNING_BODIES.addStatement,
      summary: 'Add a statement of your own',
      description:
        'The statement is active at once, and pinned. Sending the same statement again stores nothing. By default, it is a `fact` of the skill `general`.',
      status: 201,
      returns: 'The statement.',
      data: Type.Ref('Statement'),
      errors: ['quota_exceeded'],
      json: async (request, _reply, body) =>
        shownTo(request, await addStatement(request, request.params.learning_space_id, body)),
    }),

    operation({
      call: 'PATCH /statements/:statement_id',
      id: 'changeStatement',
      body: LEARNING_BODIES.changeStatement,
      summary: 'Approve, reject or edit a statement',
      description:
        'A statement that a person changes is pinned: rules and models no longer reword it. A key without the scope `read` gets back what it sent.',
      returns: 'The statement.',
      data: Type.Ref('Statement'),
      errors: ['statement_revoked'],
      json: async (request, _reply, body) =>
        shownTo(request, await changeStatement(request, request.params.statement_id, body)),
    }),

    operation({
      call: 'POST /learning_spaces/:learning_space_id/feedback',
      id: 'addFeedback',
      body: LEARNING_BODIES.addFeedback,
      summary: 'Report whether statements helped a session',
      description: 'A session has one report per statement; a later one replaces it.',
      returns: 'It was stored for those statements that are in the space.',
      errors: ['session_not_found', 'statement_not_found'],
      json: async (request, _reply, body) => addFeedback(request, request.params.learning_space_id, body),
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id/context',
      id: 'getSpaceContext',
      summary: 'Read the statements that fit a task',
      description: 'Active statements only, rendered for a prompt, with their ids for feedback.',
      querystring: SpaceContextQuery,
      returns: 'The statements.',
      data: SpaceContext,
      json: async (request) => {
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
      summary: "Read the history of a learning space's skills",
      description: 'Newest first: each change of a SKILL.md, by whom and why.',
      querystring: HistoryQuery,
      returns: 'A page of versions.',
      data: PageOf(Type.Ref('SkillVersion')),
      handle: async (request, reply) => {
        const space_id = request.params.learning_space_id
        const cursors = new Cursors('skill_versions', request.project_id, true, space_id)
        return answerPage(reply, cursors, request.query, (position) =>
          findVersions(request, space_id, position),
        )
      },
    }),
  )

/** For a key that may not read, without what sessions said. */
function shownTo(request: FastifyRequest, statement: string): string {
  if (mayRead(request)) return statement
  const none = { supports: '0', contradicts: '0', used: '0', helped: '0', harmed: '0', cites: '[]' }
  return withFields(statement, { ...none, skill: 'null', text: sentField(request, 'text', '""') })
}
