import type { MessageFormat } from '@annals/messages'
import { memberTexts } from '@annals/messages/json'
import type { Static, TSchema } from '#typebox'
import { EmptyBody } from '../../contract/schema.js'
import { invalidRequest } from '../../errors.js'
import { newId } from '../../ids.js'
import { CreateLearningSpaceBody, PatchLearningSpaceBody } from '../../learning/learning_space_schema.js'
import { LearnBody, SpacePolicy } from '../../learning/sessions/space_session_schema.js'
import { IncludeSkillBody, SkillFields } from '../../learning/skills/skill_schema.js'
import {
  AddStatementBody,
  ChangeStatementBody,
  FeedbackBody,
} from '../../learning/statements/statement_schema.js'
import type { AppendedEntry, SessionAppend } from '../../log/append/append_request.js'
import { messageEntry, partsJson } from '../../log/append/message_entry.js'
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
import { atomicAppends, batchEntries, eventEntry, messageToStore } from '../answer/appended_entries.js'
import { checkObjectBytes } from './json_parameters.js'
import { revived, TakenBody } from './taken_body.js'

/**
 * What each operation takes from its body, from the checked value and the text. All work that grows with a body is in
 * here, and the result holds texts and numbers, no trees, so it can run on another thread (work_thread/). `bytes`: of
 * the text as PostgreSQL will write it.
 */
export type TakeBody<Body, Taken> = (body: Body, text: string, bytes: number) => Taken

/**
 * What an operation takes from its body: computed here, or the work thread's result for a large one. The body is dropped:
 * each garbage collection copies what waits for its commit, and the tree of a large body would be most of that.
 */
export function takeBody<Body, Taken>(
  request: { body: unknown; bodyText: string; bodyBytes: number },
  take: TakeBody<Body, Taken>,
): Taken {
  const { body } = request
  request.body = undefined
  if (!(body instanceof TakenBody)) return take(body as Body, request.bodyText, request.bodyBytes)
  if (body.outcome.stage === 'taken') return body.outcome.taken as Taken
  throw revived(body.outcome.error)
}

const takeEvent: TakeBody<AddEventBody, AppendedEntry> = (body, text, bytes) =>
  eventEntry(body, memberTexts(text), bytes)

const takeMessage: TakeBody<AddMessageBody, { entry: AppendedEntry; parts: string }> = (
  { blob: parsed, format = 'openai', meta, key = null },
  text,
  bytes,
) => {
  checkObjectBytes('/meta', meta, text)
  const id = newId()
  const members = memberTexts(text)
  const blob = members.get('blob')!
  const message = messageEntry(format as MessageFormat, blob, parsed, id, '/blob')
  const entry = messageToStore(message, members, { id, id_given: false, format, key, bytes })
  return { entry, parts: partsJson(message.parts, blob, message.references !== undefined) }
}

const takeEntries: TakeBody<AppendEntriesBody, AppendedEntry[]> = batchEntries

const takeAppends: TakeBody<AppendToSessionsBody, SessionAppend[]> = atomicAppends

const takeRetraction: TakeBody<
  RetractEntriesBody,
  Omit<RetractEntriesBody, 'entries'> & { entries: AppendedEntry[] }
> = ({ entries, ...which }, text, bytes) => {
  const named = entries?.findIndex(({ id }) => id !== undefined) ?? -1
  if (named !== -1)
    throw invalidRequest(
      `/entries/${named}/id is not taken here: an Idempotency-Key makes it safe to repeat the whole request.`,
    )
  return { ...which, entries: entries ? batchEntries({ entries }, text, bytes) : [] }
}

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
