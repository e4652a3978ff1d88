import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf } from '../http/operation.js'
import type { Kits, ModuleRoutes } from '../module.js'
import { learningSpaceRoutes } from './learning_space_routes.js'
import { LearningSpace } from './learning_space_schema.js'
import { spaceSessionRoutes } from './sessions/space_session_routes.js'
import { SpacePolicy, SpaceSession } from './sessions/space_session_schema.js'
import { type SkillParts, skillRoutes } from './skills/skill_routes.js'
import { ListedSkill, Skill, SkillForm, SpaceSkill } from './skills/skill_schema.js'
import { statementRoutes } from './statements/statement_routes.js'
import { SkillVersion, Statement } from './statements/statement_schema.js'

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
