import Type from '#typebox'
import { responses } from '../../contract/responses.js'
import { answer } from '../../http/answer/answer.js'
import { answerChunks } from '../../http/answer/answer_chunks.js'
import type { AppServer } from '../../http/app_server.js'
import { takeWhole } from '../../http/request/bodies.js'
import { takeBody } from '../../http/request/taken_body.js'
import type { AppParts } from '../../http/service_context.js'
import { LearningSpaceParams } from '../learning_space_schema.js'
import { LearnBody, SpacePolicy, SpaceSessionParams } from './space_session_schema.js'
import {
  attachSession,
  listSpaceSessions,
  readPolicy,
  readSpaceSession,
  setPolicy,
} from './space_sessions.js'

/** The sessions that a learning space learns from, and its policy. */
export function spaceSessionRoutes(app: AppServer, { changes }: AppParts): void {
  app.post(
    '/learning_spaces/:learning_space_id/learn',
    {
      schema: {
        operationId: 'learnFromSession',
        summary: 'Learn from a session',
        description:
          'The space reads the session from its beginning, and goes on reading as it grows. A session may be in any number of spaces. If learning from it has failed, this tries again; with `now`, the model takes a known session at once.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: LearnBody,
        response: responses({
          status: 201,
          description: 'The session in the space.',
          data: Type.Ref('SpaceSession'),
          body: true,
          errors: ['learning_space_not_found', 'session_not_found', 'session_in_space', 'user_mismatch'],
        }),
      },
    },
    async (request, reply) => {
      const body = takeBody(request, takeWhole<LearnBody>)
      const { database, project_id, params } = request
      const record = await attachSession(database, project_id, params.learning_space_id, body)
      changes.touched(project_id)
      return answer(reply, record, 201)
    },
  )

  app.get(
    '/learning_spaces/:learning_space_id/sessions',
    {
      schema: {
        operationId: 'listSpaceSessions',
        summary: 'List the sessions of a learning space',
        description: 'All of them, in the order in which they were given to the space.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        response: responses({
          description: 'The sessions.',
          data: Type.Array(Type.Ref('SpaceSession')),
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) =>
      answerChunks(reply, listSpaceSessions(database, project_id, params.learning_space_id)),
  )

  app.get(
    '/learning_spaces/:learning_space_id/sessions/:session_id',
    {
      schema: {
        operationId: 'getSpaceSession',
        summary: 'Read how far a learning space is with a session',
        tags: ['Learning spaces'],
        params: SpaceSessionParams,
        response: responses({
          description: 'The session in the space.',
          data: Type.Ref('SpaceSession'),
          errors: ['learning_space_not_found', 'space_session_not_found'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) =>
      answer(
        reply,
        await readSpaceSession(database, project_id, params.learning_space_id, params.session_id),
      ),
  )

  policyRoutes(app)
}

function policyRoutes(app: AppServer): void {
  app.get(
    '/learning_spaces/:learning_space_id/policy',
    {
      schema: {
        operationId: 'getSpacePolicy',
        summary: 'Read how a learning space learns',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        response: responses({
          description: 'The policy.',
          data: Type.Ref('SpacePolicy'),
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) =>
      answer(reply, await readPolicy(database, project_id, params.learning_space_id)),
  )

  app.put(
    '/learning_spaces/:learning_space_id/policy',
    {
      schema: {
        operationId: 'setSpacePolicy',
        summary: 'Set how a learning space learns',
        description:
          'Replaces the policy. Sessions of the space are read again under it as far as it matters.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: SpacePolicy,
        response: responses({
          description: 'The policy.',
          data: Type.Ref('SpacePolicy'),
          body: true,
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async (request, reply) => {
      takeBody(request, takeWhole<SpacePolicy>)
      const { database, project_id, params, bodyText } = request
      await setPolicy(database, project_id, params.learning_space_id, bodyText)
      return answer(reply, await readPolicy(database, project_id, params.learning_space_id))
    },
  )
}
