import { memberTexts } from '@annals/messages/json'
import { checkMeta, checkObjectBytes } from '../http/request/json_parameters.js'
import { type TakeBody, whole } from '../http/request/taken_body.js'
import { CreateLearningSpaceBody, PatchLearningSpaceBody } from './learning_space_schema.js'
import { LearnBody, SpacePolicy } from './sessions/space_session_schema.js'
import { IncludeSkillBody, SkillFields } from './skills/skill_schema.js'
import { AddStatementBody, ChangeStatementBody, FeedbackBody } from './statements/statement_schema.js'

const takeSpace: TakeBody<CreateLearningSpaceBody, { user: string | null | undefined }> = (
  { user, meta },
  text,
) => {
  checkObjectBytes('/meta', meta, text)
  return { user }
}

/** Of the fields beside a skill's file, as JSON. */
export const takeSkill: TakeBody<SkillFields, { user: string | undefined; meta: string }> = (
  { user, meta },
  text,
) => {
  checkObjectBytes('/meta', meta, text)
  return { user: user ?? undefined, meta: meta ? memberTexts(text).get('meta')! : '{}' }
}

/** By operation: how its body is checked, and what is taken from it. */
export const LEARNING_BODIES = {
  createLearningSpace: [CreateLearningSpaceBody, takeSpace],
  mergeLearningSpaceMeta: [PatchLearningSpaceBody, checkMeta],
  learnFromSession: whole(LearnBody),
  setSpacePolicy: whole(SpacePolicy),
  addStatement: whole(AddStatementBody),
  changeStatement: whole(ChangeStatementBody),
  addFeedback: whole(FeedbackBody),
  createSkill: [SkillFields, takeSkill],
  includeSkill: whole(IncludeSkillBody),
} as const
