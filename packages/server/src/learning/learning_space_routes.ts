import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { Empty, PageOf } from '../contract/schema.js'
import { notFound } from '../errors.js'
import { answer } from '../http/answer/answer.js'
import { mayRead, sentField, withFields } from '../http/answer/only_sent.js'
import { answerFilteredList } from '../http/answer/page_answer.js'
import type { AppServer } from '../http/app_server.js'
import { idempotencyOf, markReplayed } from '../http/request/append_headers.js'
import { checkMeta, takeSpace } from '../http/request/bodies.js'
import { parseFilter } from '../http/request/json_parameters.js'
import { takeBody } from '../http/request/taken_body.js'
import type { AppParts } from '../http/service_context.js'
import { IdempotencyHeaders } from '../log/event_schema.js'
import { LEARNING_SPACES } from './learning_space_queries.js'
import {
  CreateLearningSpaceBody,
  LearningSpaceParams,
  ListLearningSpacesQuery,
  PatchLearningSpaceBody,
} from './learning_space_schema.js'
import { createLearningSpace, mergeMeta, readLearningSpace } from './learning_spaces.js'

/** Learning spaces: create, read, list, merge into, delete. */
export function learningSpaceRoutes(app: AppServer, { erasure }: AppParts): void {
  app.post(
    '/learning_spaces',
    {
      schema: {
        operationId: 'createLearningSpace',
        summary: 'Create a learning space',
        description:
          'For the project, or for one of its users, who is created on first use. An absent body counts as `{}`.',
        tags: ['Learning spaces'],
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
      const { user } = takeBody(request, takeSpace)
      const created = await createLearningSpace(request.database, {
        project_id: request.project_id,
        user: user ?? undefined,
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
        response: responses({
          description: 'The learning space.',
          data: Type.Ref('LearningSpace'),
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(
        reply,
        await readLearningSpace(request.database, request.project_id, request.params.learning_space_id),
      ),
  )

  listRoute(app)

  app.patch(
    '/learning_spaces/:learning_space_id',
    {
      schema: {
        operationId: 'mergeLearningSpaceMeta',
        summary: "Merge into a learning space's meta",
        description:
          'The top level is merged; a null deletes its key. Two merges at once lose nothing. A key without the scope `read` gets back the meta that it sent, without the user.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: PatchLearningSpaceBody,
        response: responses({
          description: 'The merged learning space.',
          data: Type.Ref('LearningSpace'),
          body: true,
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async (request, reply) => {
      takeBody(request, checkMeta)
      const { project_id, params, bodyText } = request
      const space = await mergeMeta(request.database, project_id, params.learning_space_id, bodyText)
      if (mayRead(request)) return answer(reply, space)
      const meta = sentField(request, 'meta', '{}')
      return answer(reply, withFields(space, { user_id: 'null', meta }))
    },
  )

  app.delete(
    '/learning_spaces/:learning_space_id',
    {
      schema: {
        operationId: 'deleteLearningSpace',
        summary: 'Delete a learning space',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        response: responses({
          description: 'It was deleted.',
          data: Empty,
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, params } = request
      const erased = await erasure.erase(database, project_id, 'learning_space', [params.learning_space_id])
      if (!erased.learning_spaces) throw notFound('learning_space')
      return answer(reply, '{}')
    },
  )
}

function listRoute(app: AppServer): void {
  app.get(
    '/learning_spaces',
    {
      schema: {
        operationId: 'listLearningSpaces',
        summary: "List the project's learning spaces",
        description: 'In order of `created_at`, as sessions are listed.',
        tags: ['Learning spaces'],
        querystring: ListLearningSpacesQuery,
        response: responses({
          description: 'A page of learning spaces.',
          data: PageOf(Type.Ref('LearningSpace')),
          errors: ['invalid_cursor'],
        }),
      },
    },
    async (request, reply) => {
      const document = parseFilter('filter_by_meta', request.query.filter_by_meta)
      return answerFilteredList(request, reply, LEARNING_SPACES, request.query, document)
    },
  )
}
