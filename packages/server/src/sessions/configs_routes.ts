import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import { answer } from '../http/answer/answer.js'
import { mayRead, sentField } from '../http/answer/only_sent.js'
import type { AppServer } from '../http/app_server.js'
import { checkConfigs } from '../http/request/bodies.js'
import { takeBody } from '../http/request/taken_body.js'
import { ConfigsBody, MergedConfigs, SessionParams } from './session_schema.js'
import { mergeConfigs, readSession, replaceConfigs } from './sessions.js'

const PATH = '/session/:session_id/configs'
const SHARED = { tags: ['Sessions'], params: SessionParams }

/** A session's configs: read, replace, merge. */
export function configsRoutes(app: AppServer): void {
  app.get(
    PATH,
    {
      schema: {
        ...SHARED,
        operationId: 'getConfigs',
        summary: "Read a session's configs",
        description: 'The session, including its configs.',
        response: responses({
          description: 'The session.',
          data: Type.Ref('Session'),
          errors: ['session_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(reply, await readSession(request.database, request.project_id, request.params.session_id)),
  )

  app.put(
    PATH,
    {
      schema: {
        ...SHARED,
        operationId: 'replaceConfigs',
        summary: "Replace a session's configs",
        body: ConfigsBody,
        response: responses({
          description: 'The configs were replaced.',
          data: Empty,
          body: true,
          errors: ['session_not_found'],
        }),
      },
    },
    async (request, reply) => {
      takeBody(request, checkConfigs)
      await replaceConfigs(request.database, request.project_id, request.params.session_id, request.bodyText)
      return answer(reply, '{}')
    },
  )

  app.patch(
    PATH,
    {
      schema: {
        ...SHARED,
        operationId: 'mergeConfigs',
        summary: "Merge into a session's configs",
        description:
          'Merges the top level; a null deletes its key. Concurrent merges lose nothing. A key without the scope `read` gets back what it sent.',
        body: ConfigsBody,
        response: responses({
          description: 'The merged configs.',
          data: MergedConfigs,
          body: true,
          errors: ['session_not_found'],
        }),
      },
    },
    async (request, reply) => {
      takeBody(request, checkConfigs)
      const { project_id, params, bodyText } = request
      const merged = await mergeConfigs(request.database, project_id, params.session_id, bodyText)
      const configs = mayRead(request) ? merged : sentField(request, 'configs', '{}')
      return answer(reply, `{"configs":${configs}}`)
    },
  )
}
