import Type, { type TSchema } from '#typebox'
import { responses } from '../contract/responses.js'
import { EmptyBody, PageOf, pageQuery, Strict, Timestamp } from '../contract/schema.js'
import type { ErrorName } from '../errors.js'
import { answer } from '../http/answer/answer.js'
import type { AppServer } from '../http/app_server.js'
import { Cursors } from '../http/request/cursor.js'
import { memberTexts } from '../json/slices.js'
import { SessionParams } from './session_schema.js'
import { readSession } from './sessions.js'

const None = Type.Literal(0)

const ObservingStatus = Type.Object({
  observed: None,
  in_process: None,
  pending: None,
  updated_at: Timestamp('When anything in the session last changed.'),
})

const Flushed = Type.Object({ status: None, errmsg: Type.Literal('') })

const described = (
  operationId: string,
  summary: string,
  data: TSchema,
  { body = false, errors = ['session_not_found'] }: { body?: boolean; errors?: ErrorName[] } = {},
) => ({
  operationId,
  summary,
  description: 'This service extracts no tasks from sessions: there are none, and none are under way.',
  tags: ['Sessions'],
  params: SessionParams,
  response: responses({ description: summary, data, body, errors }),
})

/** What existing clients ask of a service that extracts tasks from sessions: true answers of one that does not. */
export function taskRoutes(app: AppServer): void {
  app.get(
    '/session/:session_id/observing_status',
    {
      schema: {
        ...described('getObservingStatus', 'Count the messages by extraction of tasks', ObservingStatus),
      },
    },
    async (request, reply) => {
      const session = await readSession(request.database, request.project_id, request.params.session_id)
      const updated_at = memberTexts(session).get('updated_at')!
      return answer(reply, `{"observed":0,"in_process":0,"pending":0,"updated_at":${updated_at}}`)
    },
  )

  app.get(
    '/session/:session_id/task',
    {
      schema: {
        ...described('listTasks', "List a session's tasks", PageOf(Type.Object({})), {
          errors: ['session_not_found', 'invalid_cursor'],
        }),
        querystring: Strict(pageQuery()),
      },
    },
    async ({ database, project_id, params, query }, reply) => {
      await readSession(database, project_id, params.session_id)
      // No page has another behind it, so no cursor is one of this list.
      if (query.cursor !== undefined) new Cursors('tasks', project_id, params.session_id).read(query.cursor)
      return answer(reply, '{"items":[],"has_more":false,"next_cursor":""}')
    },
  )

  app.post(
    '/session/:session_id/flush',
    {
      schema: {
        ...described('flushSession', 'Wait for the extraction of tasks', Flushed, { body: true }),
        body: EmptyBody,
      },
    },
    async (request, reply) => {
      await readSession(request.database, request.project_id, request.params.session_id)
      return answer(reply, '{"status":0,"errmsg":""}')
    },
  )
}
