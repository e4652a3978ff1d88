import Type from 'typebox'
import { IdempotencyHeaders } from '../../contract/event.js'
import { CreateLearningSpaceBody, LearningSpaceParams } from '../../contract/learning_space.js'
import { responses } from '../../contract/responses.js'
import { NoQuery } from '../../contract/schema.js'
import { createLearningSpace, readLearningSpace } from '../../learning_spaces.js'
import { answer } from '../answer.js'
import type { AppParts, AppServer } from '../app_parts.js'
import { idempotencyOf, markReplayed } from '../append_headers.js'
import { checkObjectBytes } from '../json_parameters.js'

/** Learning spaces: create, read. */
export function learningSpaceRoutes(app: AppServer, { database }: AppParts): void {
  app.post(
    '/learning_spaces',
    {
      schema: {
        operationId: 'createLearningSpace',
        summary: 'Create a learning space',
        description:
          'For the project, or for one of its users, who is created on first use. No body at all counts as `{}`.',
        tags: ['Learning spaces'],
        querystring: NoQuery,
        headers: IdempotencyHeaders,
        body: CreateLearningSpaceBody,
        response: responses({
          status: 201,
          description: 'The new learning space.',
          data: Type.Ref('LearningSpace'),
          body: true,
          idempotent: true,
        }),
      },
    },
    async (request, reply) => {
      checkObjectBytes('/meta', request.body.meta, request.bodyText)
      const created = await createLearningSpace(database, {
        project_id: request.project_id,
        user: request.body.user ?? undefined,
        body: request.bodyText,
        idempotency: idempotencyOf(request),
      })
      markReplayed(reply, created.replayed)
      return answer(reply, created.json, 201)
    },
  )

  app.get(
    '/learning_spaces/:learning_space_id',
    {
      schema: {
        operationId: 'getLearningSpace',
        summary: 'Read a learning space',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        querystring: NoQuery,
        response: responses({
          description: 'The learning space.',
          data: Type.Ref('LearningSpace'),
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(reply, await readLearningSpace(database, request.project_id, request.params.learning_space_id)),
  )
}
