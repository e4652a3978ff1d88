import { answerChunks } from '@annals/kits/http/answer/answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { changeResource, readResource } from '@annals/kits/lists/tenant_resource.js'
import type { Kits } from '@annals/kits/module.js'
import Type from '#typebox'
import { refuseWithoutTokens } from '../../projects/within_quotas.js'
import { LEARNING_BODIES } from '../learning_bodies.js'
import { READ_SPACE_USAGE } from '../model/call_queries.js'
import { SET_POLICY } from './space_session_queries.js'
import { SpaceUsage, SpaceUsageQuery } from './space_session_schema.js'
import { attachSession, listSpaceSessions, readPolicy, readSpaceSession } from './space_sessions.js'

const USAGE_DAYS = 30

const operation = operationsOf('Learning spaces')

export const spaceSessionRoutes = ({ changes, config }: Pick<Kits, 'changes' | 'config'>) =>
  allOf(
    operation({
      call: 'POST /learning_spaces/:learning_space_id/learn',
      id: 'learnFromSession',
      body: LEARNING_BODIES.learnFromSession,
      summary: 'Learn from a session',
      description:
        'The space reads the session from its beginning, and keeps reading as it grows. A session may be in any number of spaces. If learning from it has failed, this tries again; with `now`, the model takes a known session at once.',
      status: 201,
      returns: 'The session in the space.',
      data: Type.Ref('SpaceSession'),
      errors: ['session_not_found', 'session_in_space', 'user_mismatch', 'quota_exceeded'],
      json: async (request, _reply, body) => {
        const { project_id, params } = request
        if (body.now) await refuseWithoutTokens(request, config.model_tokens_per_day_max)
        const record = await attachSession(request, params.learning_space_id, body)
        changes.touched(project_id)
        return record
      },
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id/sessions',
      id: 'listSpaceSessions',
      summary: 'List the sessions of a learning space',
      description: 'All sessions, in the order in which they were added to the space.',
      returns: 'The sessions.',
      data: Type.Array(Type.Ref('SpaceSession')),
      handle: async (request, reply) =>
        answerChunks(reply, listSpaceSessions(request, request.params.learning_space_id)),
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id/sessions/:session_id',
      id: 'getSpaceSession',
      summary: "Read a learning space's progress with a session",
      returns: 'The session in the space.',
      data: Type.Ref('SpaceSession'),
      errors: ['space_session_not_found'],
      json: async (request) =>
        readSpaceSession(request, request.params.learning_space_id, request.params.session_id),
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id/usage',
      id: 'getSpaceUsage',
      summary: "Read a learning space's use of a model",
      description: 'Calls and tokens, by day and by task of the model.',
      querystring: SpaceUsageQuery,
      returns: 'The usage.',
      data: SpaceUsage,
      json: async (request) => {
        const asked = [request.params.learning_space_id, request.query.days ?? USAGE_DAYS]
        return readResource(request, 'learning_space', READ_SPACE_USAGE, ...asked)
      },
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id/policy',
      id: 'getSpacePolicy',
      summary: 'Read how a learning space learns',
      returns: 'The policy.',
      data: Type.Ref('SpacePolicy'),
      json: async (request) => readPolicy(request, request.params.learning_space_id),
    }),

    operation({
      call: 'PUT /learning_spaces/:learning_space_id/policy',
      id: 'setSpacePolicy',
      body: LEARNING_BODIES.setSpacePolicy,
      summary: 'Set how a learning space learns',
      description:
        'Replaces the policy. If it matters, sessions of the space are read again under the new one.',
      returns: 'The policy.',
      data: Type.Ref('SpacePolicy'),
      json: async (request) => {
        const { params, bodyText } = request
        await changeResource(request, 'learning_space', SET_POLICY, params.learning_space_id, bodyText)
        return await readPolicy(request, params.learning_space_id)
      },
    }),
  )
