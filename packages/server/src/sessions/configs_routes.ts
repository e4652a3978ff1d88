import Type from '#typebox'
import { mayRead, sentField } from '../http/answer/only_sent.js'
import { allOf, operationsOf } from '../http/operation.js'
import { checkConfigs, takeBody } from '../http/request/bodies.js'
import { ConfigsBody, MergedConfigs, SessionParams } from './session_schema.js'
import { mergeConfigs, readSession, replaceConfigs } from './sessions.js'

const operation = operationsOf('Sessions')

/** A session's configs: read, replace, merge. */
export const configsRoutes = allOf(
  operation({
    call: 'GET /session/:session_id/configs',
    id: 'getConfigs',
    summary: "Read a session's configs",
    description: 'The session, including its configs.',
    params: SessionParams,
    returns: 'The session.',
    data: Type.Ref('Session'),
    errors: ['session_not_found'],
    json: async (request) => readSession(request, request.params.session_id),
  }),

  operation({
    call: 'PUT /session/:session_id/configs',
    id: 'replaceConfigs',
    summary: "Replace a session's configs",
    params: SessionParams,
    body: ConfigsBody,
    returns: 'The configs were replaced.',
    errors: ['session_not_found'],
    json: async (request) => {
      takeBody(request, checkConfigs)
      await replaceConfigs(request, request.params.session_id, request.bodyText)
    },
  }),

  operation({
    call: 'PATCH /session/:session_id/configs',
    id: 'mergeConfigs',
    summary: "Merge into a session's configs",
    description:
      'Merges the top level; a null deletes its key. Concurrent merges lose nothing. A key without the scope `read` gets back what it sent.',
    params: SessionParams,
    body: ConfigsBody,
    returns: 'The merged configs.',
    data: MergedConfigs,
    errors: ['session_not_found'],
    json: async (request) => {
      takeBody(request, checkConfigs)
      const { params, bodyText } = request
      const merged = await mergeConfigs(request, params.session_id, bodyText)
      const configs = mayRead(request) ? merged : sentField(request, 'configs', '{}')
      return `{"configs":${configs}}`
    },
  }),
)
