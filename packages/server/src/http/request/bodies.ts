import { memberTexts } from '@annals/messages/json'
import type { Static, TSchema } from '#typebox'
import { EmptyBody } from '../../contract/schema.js'
import { CreateLearningSpaceBody, PatchLearningSpaceBody } from '../../learning/learning_space_schema.js'
import { LearnBody, SpacePolicy } from '../../learning/sessions/space_session_schema.js'
import { IncludeSkillBody, SkillFields } from '../../learning/skills/skill_schema.js'
import {
  AddStatementBody,
  ChangeStatementBody,
  FeedbackBody,
} from '../../learning/statements/statement_schema.js'
import {
  takeAppends,
  takeCompaction,
  takeEntries,
  takeEvent,
  takeMessage,
  takeRetraction,
} from '../../log/append_bodies.js'
import { CompactSessionBody } from '../../log/compaction_schema.js'
import { AppendEntriesBody, AppendToSessionsBody, RetractEntriesBody } from '../../log/entry_schema.js'
import { AddEventBody } from '../../log/event_schema.js'
import { AddMessageBody, PatchMetaBody } from '../../log/message_schema.js'
import { ChangeProjectBody, CreateProjectBody, CreateTokenBody } from '../../projects/project_schema.js'
import {
  ConfigsBody,
  CopySessionBody,
  CreateSessionBody,
  UpdateSessionBody,
} from '../../sessions/session_schema.js'
import { CreateWebhookBody } from '../../webhooks/webhook_schema.js'
import { checkObjectBytes } from './json_parameters.js'
import type { TakeBody } from './taken_body.js'

/** The other fields of a resource with an object in it; the object passes through as text. */
interface GivenNames {
  user: string | null | undefined
  use_uuid: string | null | undefined
}

const takeSession: TakeBody<CreateSessionBody, GivenNames> = ({ user, use_uuid, configs }, text) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid }
}

const takeCopy: TakeBody<CopySessionBody, GivenNames & { up_to_seq: number | undefined }> = (
  { up_to_seq, user, use_uuid, configs },
  text,
) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid, up_to_seq: up_to_seq ?? undefined }
}

const checkConfigs: TakeBody<ConfigsBody, void> = ({ configs }, text) =>
  checkObjectBytes('/configs', configs, text)

const takeSpace: TakeBody<CreateLearningSpaceBody, Omit<GivenNames, 'use_uuid'>> = ({ user, meta }, text) => {
  checkObjectBytes('/meta', meta, text)
  return { user }
}

const checkMeta: TakeBody<{ meta: object }, void> = ({ meta }, text) => checkObjectBytes('/meta', meta, text)

/** Of the fields beside a skill's file, as JSON. */
export const takeSkill: TakeBody<SkillFields, { user: string | undefined; meta: string }> = (
  { user, meta },
  text,
) => {
  checkObjectBytes('/meta', meta, text)
  return { user: user ?? undefined, meta: meta ? memberTexts(text).get('meta')! : '{}' }
}

/** For a body whose schema limits all of its content. */
const whole = <Schema extends TSchema>(schema: Schema) => [schema, (body: Static<Schema>) => body] as const

/** By operation: how its body is checked, and what is taken from it. */
export const BODIES = {
  addEvent: [AddEventBody, takeEvent],
  addMessage: [AddMessageBody, takeMessage],
  appendEntries: [AppendEntriesBody, takeEntries],
  appendToSessions: [AppendToSessionsBody, takeAppends],
  retractEntries: [RetractEntriesBody, takeRetraction],
  compactSession: [CompactSessionBody, takeCompaction],
  createSession: [CreateSessionBody, takeSession],
  flushSession: whole(EmptyBody),
  copySession: [CopySessionBody, takeCopy],
  updateSession: whole(UpdateSessionBody),
  replaceConfigs: [ConfigsBody, checkConfigs],
  mergeConfigs: [ConfigsBody, checkConfigs],
  mergeMessageMeta: [PatchMetaBody, checkMeta],
  createLearningSpace: [CreateLearningSpaceBody, takeSpace],
  mergeLearningSpaceMeta: [PatchLearningSpaceBody, checkMeta],
  learnFromSession: whole(LearnBody),
  setSpacePolicy: whole(SpacePolicy),
  addStatement: whole(AddStatementBody),
  changeStatement: whole(ChangeStatementBody),
  addFeedback: whole(FeedbackBody),
  createSkill: [SkillFields, takeSkill],
  includeSkill: whole(IncludeSkillBody),
  createWebhook: whole(CreateWebhookBody),
  createProject: whole(CreateProjectBody),
  changeProject: whole(ChangeProjectBody),
  createToken: whole(CreateTokenBody),
} as const satisfies Record<string, readonly [TSchema, TakeBody<never, unknown>]>

export type BodyOperation = keyof typeof BODIES
