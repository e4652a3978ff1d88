import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { PageOf } from '../../contract/schema.js'
import { mayRead, sentField, withFields } from '../../http/answer/only_sent.js'
import { answerList, readListCursor } from '../../http/answer/page_answer.js'
import { allOf, operationsOf } from '../../http/operation.js'
import { takeBody, takeWhole } from '../../http/request/bodies.js'
import { Cursors } from '../../http/request/cursor.js'
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

const operation = operationsOf('Learning spaces')

/** Statements: list, add, approve, reject, edit; and what sessions say of them. */
export const statementRoutes = allOf(
  operation({
    call: 'GET /learning_spaces/:learning_space_id/statements',
    id: 'listStatements',
    summary: 'List the statements of a learning space',
    description: 'In order of `created_at`, each with the entries that it cites.',
    params: LearningSpaceParams,
    querystring: ListStatementsQuery,
    returns: 'A page of statements.',
    data: PageOf(Type.Ref('Statement')),
    errors: ['learning_space_not_found', 'invalid_cursor'],
    handle: async (request, reply) => {
      const { database, project_id, params, query } = request
      const { limit = PAGE_LIMIT_DEFAULT, time_desc = false, cursor, state, kind, skill } = query
      const filter = { project_id, learning_space_id: params.learning_space_id, state, kind, skill }
      const cursors = new Cursors('statements', project_id, time_desc, JSON.stringify(filter))
      const position = { time_desc, limit, after: readListCursor(cursors, cursor) }
      return answerList(reply, cursors, () => findStatements(database, filter, position), limit)
    },
  }),

  operation({
    call: 'POST /learning_spaces/:learning_space_id/statements',
    id: 'addStatement',
    summary: 'Add a statement of your own',
    description:
      'It is active at once and pinned. The same statement again is not stored twice. By default a `fact` of the skill `general`.',
    params: LearningSpaceParams,
    body: AddStatementBody,
    status: 201,
    returns: 'The statement.',
    data: Type.Ref('Statement'),
    errors: ['learning_space_not_found', 'quota_exceeded'],
    json: async (request) => {
      const body = takeBody(request, takeWhole<AddStatementBody>)
      const statement = await addStatement(request, request.params.learning_space_id, body)
      return shownTo(request, statement)
    },
  }),

  operation({
    call: 'PATCH /statements/:statement_id',
    id: 'changeStatement',
    summary: 'Approve, reject or edit a statement',
    description:
      'Whatever a person changes is pinned: rules and models no longer reword it. A key without the scope `read` gets back what it sent.',
    params: StatementParams,
    body: ChangeStatementBody,
    returns: 'The statement.',
    data: Type.Ref('Statement'),
    errors: ['statement_not_found', 'statement_revoked'],
    json: async (request) => {
      const body = takeBody(request, takeWhole<ChangeStatementBody>)
      const statement = await changeStatement(request, request.params.statement_id, body)
      return shownTo(request, statement)
    },
  }),

  operation({
    call: 'POST /learning_spaces/:learning_space_id/feedback',
    id: 'addFeedback',
    summary: 'Say whether statements helped a session',
    description: 'A session says it once of each statement; what it says later replaces that.',
    params: LearningSpaceParams,
    body: FeedbackBody,
    returns: 'It was stored, for those of the statements that the space has.',
    errors: ['learning_space_not_found', 'session_not_found', 'statement_not_found'],
    json: async (request) => {
      const body = takeBody(request, takeWhole<FeedbackBody>)
      await addFeedback(request, request.params.learning_space_id, body)
    },
  }),
)

/** For a key that may not read, without what sessions said. */
function shownTo(request: FastifyRequest, statement: string): string {
  if (mayRead(request)) return statement
  const none = { supports: '0', contradicts: '0', used: '0', helped: '0', harmed: '0', cites: '[]' }
  return withFields(statement, { ...none, skill: 'null', text: sentField(request, 'text', '""') })
}
