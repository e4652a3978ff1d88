import Type from '#typebox'
import { PageOf } from '../contract/schema.js'
import { notFound } from '../errors.js'
import { sentField, withFields } from '../http/answer/answer.js'
import { answerFilteredList } from '../http/answer/page_answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { parseFilter } from '../http/request/json_parameters.js'
import { idempotencyOf, markReplayed } from '../log/append_within_quota.js'
import { IdempotencyHeaders } from '../log/event_schema.js'
import type { Kits } from '../module.js'
import { mayRead } from '../projects/authenticate.js'
import { LEARNING_BODIES } from './learning_bodies.js'
import { LEARNING_SPACES } from './learning_space_queries.js'
import { ListLearningSpacesQuery } from './learning_space_schema.js'
import { createLearningSpace, mergeMeta, readLearningSpace } from './learning_spaces.js'

const operation = operationsOf('Learning spaces')

export const learningSpaceRoutes = ({ erasure }: Pick<Kits, 'erasure'>) =>
  allOf(
    operation({
      call: 'POST /learning_spaces',
      id: 'createLearningSpace',
      body: LEARNING_BODIES.createLearningSpace,
      summary: 'Create a learning space',
      description:
        'For the project, or for one of its users, who is created on first use. An absent body counts as `{}`.',
      headers: IdempotencyHeaders,
      status: 201,
      returns: 'The new learning space.',
      data: Type.Ref('LearningSpace'),
      json: async (request, reply, { user }) => {
        const created = await createLearningSpace(request.database, {
          project_id: request.project_id,
          user: user ?? undefined,
          body: request.bodyText,
          idempotency: idempotencyOf(request),
        })
        markReplayed(reply, created.replayed)
        return created.json
      },
    }),

    operation({
      call: 'GET /learning_spaces/:learning_space_id',
      id: 'getLearningSpace',
      summary: 'Read a learning space',
      returns: 'The learning space.',
      data: Type.Ref('LearningSpace'),
      json: async (request) => readLearningSpace(request, request.params.learning_space_id),
    }),

    operation({
      call: 'GET /learning_spaces',
      id: 'listLearningSpaces',
      summary: "List the project's learning spaces",
      description: 'In order of `created_at`, as sessions are listed.',
      querystring: ListLearningSpacesQuery,
      returns: 'A page of learning spaces.',
      data: PageOf(Type.Ref('LearningSpace')),
      handle: async (request, reply) => {
        const document = parseFilter('filter_by_meta', request.query.filter_by_meta)
        return answerFilteredList(request, reply, LEARNING_SPACES, request.query, document)
      },
    }),

    operation({
      call: 'PATCH /learning_spaces/:learning_space_id',
      id: 'mergeLearningSpaceMeta',
      body: LEARNING_BODIES.mergeLearningSpaceMeta,
      summary: "Merge into a learning space's meta",
      description:
        'The top level is merged; a null deletes its key. Two merges at once lose nothing. A key without the scope `read` gets back the meta that it sent, without the user.',
      returns: 'The merged learning space.',
      data: Type.Ref('LearningSpace'),
      json: async (request) => {
        const { params, bodyText } = request
        const space = await mergeMeta(request, params.learning_space_id, bodyText)
        if (mayRead(request)) return space
        return withFields(space, { user_id: 'null', meta: sentField(request, 'meta', '{}') })
      },
    }),

    operation({
      call: 'DELETE /learning_spaces/:learning_space_id',
      id: 'deleteLearningSpace',
      summary: 'Delete a learning space',
      returns: 'It was deleted.',
      json: async (request) => {
        const erased = await erasure.erase(request, 'learning_space', [request.params.learning_space_id])
        if (!erased.learning_spaces) throw notFound('learning_space')
      },
    }),
  )
