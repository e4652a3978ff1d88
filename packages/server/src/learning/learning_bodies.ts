import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { placeOf } from '@annals/kits/http/openapi/schema_words.js'
import { type TakeBody, whole } from '@annals/kits/http/request/read_body.js'
import { readForm } from '@annals/kits/http/request/read_form.js'
import type { FormBody } from '@annals/kits/http/request/take_on_thread.js'
import { checkMeta, checkObjectBytes } from '@annals/kits/http/request/validate.js'
import { isRefusal, memberTexts, readStorable } from '@annals/messages/json'
import { CreateLearningSpaceBody, PatchLearningSpaceBody } from './learning_space_schema.js'
import { LearnBody, SpacePolicy } from './sessions/space_session_schema.js'
import { IncludeSkillBody, SKILL_FIELD_BYTES_MAX, SkillFields, ZIP_BYTES_MAX } from './skills/skill_schema.js'
import { AddStatementBody, ChangeStatementBody, FeedbackBody } from './statements/statement_schema.js'

const takeSpace: TakeBody<CreateLearningSpaceBody, { user: string | null | undefined }> = (
  { user, meta },
  text,
) => {
  checkObjectBytes('/meta', meta, text)
  return { user }
}

export const takeSkill: TakeBody<SkillFields, { user: string | undefined; meta: string }> = (
  { user, meta },
  text,
) => {
  checkObjectBytes('/meta', meta, text)
  return { user: user ?? undefined, meta: meta ? memberTexts(text).get('meta')! : '{}' }
}

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

/** Reads a skill that was sent as a form: a zip in the field `file`, and fields of which `meta` is JSON. */
export async function readSkillForm(content_type: string, body: Buffer): Promise<FormBody | AnnalsError> {
  const form = await readForm(content_type, body)
  if (form instanceof AnnalsError) return form
  const file = form.files.get('file')
  if (!file || form.files.size > 1) return invalidRequest('The form must have one file, in the field file.')
  if (file.bytes.length > ZIP_BYTES_MAX) return tooLarge('file', ZIP_BYTES_MAX)
  const long = Object.entries(form.texts).find(([, text]) => text.length > SKILL_FIELD_BYTES_MAX)
  if (long) return tooLarge(placeOf('body', long[0]), SKILL_FIELD_BYTES_MAX)
  const { meta = 'null', ...others } = form.texts
  const text = JSON.stringify(others)
  const fields = Buffer.from(`${text.slice(0, -1)}${text === '{}' ? '' : ','}"meta":${meta}}`)
  const json = readStorable(fields)
  if (isRefusal(json))
    return invalidRequest(`/meta must be a JSON object that can be stored: ${json.reason}.`)
  return { body: fields, taken: [file] }
}

function tooLarge(field: string, bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `/${field} has more than ${bytes_max} bytes. Send a smaller one.`,
  )
}
