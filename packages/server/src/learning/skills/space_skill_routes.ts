import Type from '#typebox'
import { answer } from '../../http/answer/answer.js'
import { answerChunks } from '../../http/answer/answer_chunks.js'
import { allOf, operationsOf } from '../../http/operation.js'
import { takeBody, takeWhole } from '../../http/request/bodies.js'
import { IncludeSkillBody } from './skill_schema.js'
import { excludeSkill, includeSkill, listSpaceSkills } from './skills.js'

const operation = operationsOf('Learning spaces')

export const spaceSkillRoutes = allOf(
  operation({
    call: 'POST /learning_spaces/:learning_space_id/skills',
    id: 'includeSkill',
    summary: 'Include a skill in a learning space',
    description:
      'A skill that somebody wrote, in any number of spaces. The space of a user takes skills of that user and of the project.',
    body: IncludeSkillBody,
    status: 201,
    returns: 'The skill in the space.',
    data: Type.Ref('SpaceSkill'),
    also: { 200: 'It was there already.' },
    errors: ['skill_not_found', 'skill_is_learnt', 'user_mismatch', 'quota_exceeded'],
    handle: async (request, reply) => {
      const { skill_id } = takeBody(request, takeWhole<IncludeSkillBody>)
      const { json, known } = await includeSkill(request, request.params.learning_space_id, skill_id)
      return answer(reply, json, known ? 200 : 201)
    },
  }),

  operation({
    call: 'GET /learning_spaces/:learning_space_id/skills',
    id: 'listSpaceSkills',
    summary: 'List the skills of a learning space',
    description:
      'All that were included, and those that it has learnt and of which a statement is active, in order of their `created_at`.',
    returns: 'The skills.',
    data: Type.Array(Type.Ref('Skill')),
    handle: async (request, reply) =>
      answerChunks(reply, listSpaceSkills(request, request.params.learning_space_id)),
  }),

  operation({
    call: 'DELETE /learning_spaces/:learning_space_id/skills/:skill_id',
    id: 'excludeSkill',
    summary: 'Take a skill out of a learning space',
    description: 'If it is in it. The skill itself stays.',
    returns: 'It is not in the space.',
    errors: ['skill_is_learnt'],
    json: async (request) => {
      await excludeSkill(request, request.params.learning_space_id, request.params.skill_id)
    },
  }),
)
