import { PageOf } from '@annals/kits/contract/schema.js'
import { mergedTooLarge, notFound } from '@annals/kits/errors.js'
import { sentField, withFields } from '@annals/kits/http/answer/answer.js'
import { answerFilteredList } from '@annals/kits/http/answer/page_answer.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { parseFilter } from '@annals/kits/http/request/validate.js'
import { newId } from '@annals/kits/ids.js'
import { MERGED_BYTES_MAX } from '@annals/kits/limits.js'
import { changeResource, readResource } from '@annals/kits/lists/tenant_resource.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import Type from '#typebox'
import { idempotencyOf, markReplayed } from '../log/append_within_quota.js'
import { createOnce } from '../log/create_once.js'
import { IdempotencyHeaders } from '../log/event_schema.js'
import { mayRead } from '../projects/authenticate.js'
import { LEARNING_BODIES } from './learning_bodies.js'
import {
  CREATE_LEARNING_SPACE,
  LEARNING_SPACES,
  MERGE_META,
  READ_LEARNING_SPACE,
} from './learning_space_queries.js'
import { LearningSpace, ListLearningSpacesQuery } from './learning_space_schema.js'
import { spaceSessionRoutes } from './sessions/space_session_routes.js'
import { SpacePolicy, SpaceSession } from './sessions/space_session_schema.js'
import { type SkillParts, skillRoutes } from './skills/skill_routes.js'
import { ListedSkill, Skill, SkillForm, SpaceSkill } from './skills/skill_schema.js'
import { statementRoutes } from './statements/statement_routes.js'
import { SkillVersion, Statement } from './statements/statement_schema.js'

const operation = operationsOf('Learning spaces')

const learningSpaceRoutes = ({ erasure }: Pick<Kits, 'erasure'>) =>
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
      json: async (request, reply, { user = null }) => {
        const { database, project_id, bodyText } = request
        const idempotency = idempotencyOf(request)
        const { key = null, request_hash = null } = idempotency ?? {}
        const created = await createOnce(request, idempotency, async () => {
          const space = [newId(), user, newId(), bodyText, key, request_hash]
          return (await call(database, CREATE_LEARNING_SPACE, project_id, ...space)) ?? undefined
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
      json: async (request) =>
        readResource(request, 'learning_space', READ_LEARNING_SPACE, request.params.learning_space_id),
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
        'Merges the top level; a null deletes its key. Concurrent merges lose nothing. A key without the scope `read` gets back the meta that it sent, without the user.',
      returns: 'The merged learning space.',
      data: Type.Ref('LearningSpace'),
      json: async (request) => {
        const change = [request.params.learning_space_id, request.bodyText, MERGED_BYTES_MAX]
        const space = await changeResource(request, 'learning_space', MERGE_META, ...change)
        if (space === '') throw mergedTooLarge('meta')
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

export const learningRoutes = (parts: Kits & SkillParts): ModuleRoutes => ({
  project: allOf(
    learningSpaceRoutes(parts),
    spaceSessionRoutes(parts),
    statementRoutes(parts),
    skillRoutes(parts),
  ),
  schemas: [
    LearningSpace,
    ListedSkill,
    Skill,
    SpacePolicy,
    SkillVersion,
    SpaceSession,
    SpaceSkill,
    Statement,
  ],
  form_bodies: { createSkill: SkillForm },
  links: {
    createLearningSpace: { learning_space_id: DATA_ID },
    createSkill: { skill_id: DATA_ID },
    addStatement: { statement_id: DATA_ID },
  },
})
