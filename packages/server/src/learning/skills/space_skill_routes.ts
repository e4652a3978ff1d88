import Type from '#typebox'
import { responses } from '../../contract/responses.js'
import { Empty } from '../../contract/schema.js'
import { answer } from '../../http/answer/answer.js'
import { answerChunks } from '../../http/answer/answer_chunks.js'
import type { AppServer } from '../../http/app_server.js'
import { takeWhole } from '../../http/request/bodies.js'
import { takeBody } from '../../http/request/taken_body.js'
import { LearningSpaceParams } from '../learning_space_schema.js'
import { IncludeSkillBody, SpaceSkillParams } from './skill_schema.js'
import { excludeSkill, includeSkill, listSpaceSkills } from './skills.js'

/** The skills of a learning space. */
export function spaceSkillRoutes(app: AppServer): void {
  app.post(
    '/learning_spaces/:learning_space_id/skills',
    {
      schema: {
        operationId: 'includeSkill',
        summary: 'Include a skill in a learning space',
        description:
          'A skill that somebody wrote, in any number of spaces. The space of a user takes skills of that user and of the project.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        body: IncludeSkillBody,
        response: responses({
          status: 201,
          description: 'The skill in the space.',
          data: Type.Ref('SpaceSkill'),
          also: { 200: 'It was there already.' },
          body: true,
          errors: [
            'learning_space_not_found',
            'skill_not_found',
            'skill_is_learnt',
            'user_mismatch',
            'quota_exceeded',
          ],
        }),
      },
    },
    async (request, reply) => {
      const { skill_id } = takeBody(request, takeWhole<IncludeSkillBody>)
      const { database, project_id, params } = request
      const { json, known } = await includeSkill(database, project_id, params.learning_space_id, skill_id)
      return answer(reply, json, known ? 200 : 201)
    },
  )

  app.get(
    '/learning_spaces/:learning_space_id/skills',
    {
      schema: {
        operationId: 'listSpaceSkills',
        summary: 'List the skills of a learning space',
        description:
          'All that were included, and those that it has learnt and of which a statement is active, in order of their `created_at`.',
        tags: ['Learning spaces'],
        params: LearningSpaceParams,
        response: responses({
          description: 'The skills.',
          data: Type.Array(Type.Ref('Skill')),
          errors: ['learning_space_not_found'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) =>
      answerChunks(reply, listSpaceSkills(database, project_id, params.learning_space_id)),
  )

  app.delete(
    '/learning_spaces/:learning_space_id/skills/:skill_id',
    {
      schema: {
        operationId: 'excludeSkill',
        summary: 'Take a skill out of a learning space',
        description: 'If it is in it. The skill itself stays.',
        tags: ['Learning spaces'],
        params: SpaceSkillParams,
        response: responses({
          description: 'It is not in the space.',
          data: Empty,
          errors: ['learning_space_not_found', 'skill_is_learnt'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) => {
      await excludeSkill(database, project_id, params.learning_space_id, params.skill_id)
      return answer(reply, '{}')
    },
  )
}
