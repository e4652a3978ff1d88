import { memberTexts } from '@annals/messages/json'
import Type from '#typebox'
import { PageOf, pageQuery, Strict, Timestamp } from '../contract/schema.js'
import { allOf, operationsOf } from '../http/operation.js'
import { Cursors } from '../http/request/cursor.js'
import { SESSION_BODIES } from './session_bodies.js'
import { readSession } from './sessions.js'

const None = Type.Literal(0)

const ObservingStatus = Type.Object({
  observed: None,
  in_process: None,
  pending: None,
  updated_at: Timestamp('When anything in the session last changed.'),
})

const Flushed = Type.Object({ status: None, errmsg: Type.Literal('') })

const operation = operationsOf('Sessions')
const description = 'This service extracts no tasks from sessions: there are none, and none are under way.'

/** What existing clients ask of a service that extracts tasks from sessions: true answers of one that does not. */
export const taskRoutes = allOf(
  operation({
    call: 'GET /session/:session_id/observing_status',
    id: 'getObservingStatus',
    summary: 'Count the messages by extraction of tasks',
    description,
    returns: 'Count the messages by extraction of tasks',
    data: ObservingStatus,
    json: async (request) => {
      const session = await readSession(request, request.params.session_id)
      const updated_at = memberTexts(session).get('updated_at')!
      return `{"observed":0,"in_process":0,"pending":0,"updated_at":${updated_at}}`
    },
  }),

  operation({
    call: 'GET /session/:session_id/task',
    id: 'listTasks',
    summary: "List a session's tasks",
    description,
    querystring: Strict(pageQuery()),
    returns: "List a session's tasks",
    data: PageOf(Type.Object({})),
    json: async (request) => {
      await readSession(request, request.params.session_id)
      // No page has another behind it, so no cursor is one of this list.
      if (request.query.cursor !== undefined)
        new Cursors('tasks', request.project_id, request.params.session_id).read(request.query.cursor)
      return '{"items":[],"has_more":false,"next_cursor":""}'
    },
  }),

  operation({
    call: 'POST /session/:session_id/flush',
    id: 'flushSession',
    body: SESSION_BODIES.flushSession,
    summary: 'Wait for the extraction of tasks',
    description,
    returns: 'Wait for the extraction of tasks',
    data: Flushed,
    json: async (request) => {
      await readSession(request, request.params.session_id)
      return '{"status":0,"errmsg":""}'
    },
  }),
)
