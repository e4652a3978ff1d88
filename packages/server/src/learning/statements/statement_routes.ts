import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { responses } from '../../contract/responses.js'
import { Empty, PageOf } from '../../contract/schema.js'
import { answer } from '../../http/answer/answer.js'
import { mayRead, sentField, withFields } from '../../http/answer/only_sent.js'
import { answerList, readListCursor } from '../../http/answer/page_answer.js'
import type { AppServer } from '../../http/app_server.js'
import { takeWhole } from '../../http/request/bodies.js'
import { Cursors } from '../../http/request/cursor.js'
import { takeBody } from '../../http/request/taken_body.js'
import { PAGE_LIMIT_DEFAULT } from '../../limits.js'
import { LearningSpaceParams } from '../learning_space_schema.js'
import {
  AddStatementBody,
  ChangeStatementBody,
  FeedbackBody,
  ListStatementsQuery,
  StatementParams,
} from './statement_schema.js'
import { addFeedback, addStatement, changeStatement, findStatements } from './statements.js'

/** Statements: list, add, approve, reject, edit; and what sessions say of them. */
export function statementRoutes(app: AppServer): void {
  listRoute(app)

  app.post(
    '/learning_spaces/:learning_space_id/statements',
    {
      schema: {
        operationId: 'addStatement',
        summary: 'Add a statement of your own',
        description:
          'It is active at once and pinned. The same statement again is not stored twice. By default a `fact` of the skill `general`.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: AddStatementBody,
        response: responses({
          status: 201,
          description: 'The statement.',
          data: Type.Ref('Statement'),
          body: true,
          errors: ['learning_space_not_found', 'quota_exceeded'],
        }),
      },
    },
    async (request, reply) => {
      const body = takeBody(request, takeWhole<AddStatementBody>)
      const { database, project_id, params } = request
      const statement = await addStatement(database, project_id, params.learning_space_id, body)
      return answer(reply, shownTo(request, statement), 201)
    },
  )

  app.patch(
    '/statements/:statement_id',
    {
      schema: {
        operationId: 'changeStatement',
        summary: 'Approve, reject or edit a statement',
        description:
          'Whatever a person changes is pinned: rules and models no longer reword it. A key without the scope `read` gets back what it sent.',
        tags: ['Learning spaces'],
        params: StatementParams,
        body: ChangeStatementBody,
        response: responses({
          description: 'The statement.',
          data: Type.Ref('Statement'),
          body: true,
          errors: ['statement_not_found', 'statement_revoked'],
        }),
      },
    },
    async (request, reply) => {
      const body = takeBody(request, takeWhole<ChangeStatementBody>)
      const { database, project_id, params } = request
      const statement = await changeStatement(database, project_id, params.statement_id, body)
      return answer(reply, shownTo(request, statement))
    },
  )

  app.post(
    '/learning_spaces/:learning_space_id/feedback',
    {
      schema: {
        operationId: 'addFeedback',
        summary: 'Say whether statements helped a session',
        description: 'A session says it once of each statement; what it says later replaces that.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: FeedbackBody,
        response: responses({
          description: 'It was stored, for those of the statements that the space has.',
          data: Empty,
          body: true,
          errors: ['learning_space_not_found', 'session_not_found', 'statement_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const body = takeBody(request, takeWhole<FeedbackBody>)
      const { database, project_id, params } = request
      await addFeedback(database, project_id, params.learning_space_id, body)
      return answer(reply, '{}')
    },
  )
}

/** For a key that may not read, without what sessions said. */
function shownTo(request: FastifyRequest, statement: string): string {
  if (mayRead(request)) return statement
  const none = { supports: '0', contradicts: '0', used: '0', helped: '0', harmed: '0', cites: '[]' }
  return withFields(statement, { ...none, skill: 'null', text: sentField(request, 'text', '""') })
}

function listRoute(app: AppServer): void {
  app.get(
    '/learning_spaces/:learning_space_id/statements',
    {
      schema: {
        operationId: 'listStatements',
        summary: 'List the statements of a learning space',
        description: 'In order of `created_at`, each with the entries that it cites.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        querystring: ListStatementsQuery,
        response: responses({
          description: 'A page of statements.',
          data: PageOf(Type.Ref('Statement')),
          errors: ['learning_space_not_found', 'invalid_cursor'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, params, query } = request
      const { limit = PAGE_LIMIT_DEFAULT, time_desc = false, cursor, state, kind, skill } = query
      const filter = { project_id, learning_space_id: params.learning_space_id, state, kind, skill }
      const cursors = new Cursors('statements', project_id, time_desc, JSON.stringify(filter))
      const position = { time_desc, limit, after: readListCursor(cursors, cursor) }
      return answerList(reply, cursors, () => findStatements(database, filter, position), limit)
    },
  )
}
