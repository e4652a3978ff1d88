import Type from '#typebox'
import { STORE_BYTES } from '../../blobs/blob_store.js'
import { AnnalsError } from '../../errors.js'
import { storeBlobWithinQuota } from '../../http/admission/quotas.js'
import { answer } from '../../http/answer/answer.js'
import { mayRead, withFields } from '../../http/answer/only_sent.js'
import type { AppServer } from '../../http/app_server.js'
import { type Operation, operationsOf } from '../../http/operation.js'
import type { takeSkill } from '../../http/request/bodies.js'
import { receiveForm } from '../../http/request/receive_form.js'
import { revived } from '../../http/request/taken_body.js'
import type { WorkThread } from '../../http/work_thread/work_thread.js'
import { isSkillMd, readSkillZip, type SkillFile, wrongZip, ZIP_BYTES_MAX } from './skill_zip.js'
import { createSkill } from './skills.js'

const postSkill = operationsOf('Skills')({
  call: 'POST /agent_skills',
  id: 'createSkill',
  summary: 'Upload a skill',
  description:
    'A zip in the Agent Skills format: SKILL.md at its top level or in its only folder, with a name and a description in front matter, and at most 200 files. It is the skill of a user, who is created on first use, or of the project; each has one skill of a name. The same skill again is not stored twice.',
  status: 201,
  returns: 'The skill was stored.',
  data: Type.Ref('Skill'),
  also: { 200: 'It was there already.' },
  errors: [
    'quota_exceeded',
    'skill_exists',
    'payload_too_large',
    'unsupported_media_type',
    'request_timeout',
  ],
  handle: async (request, reply, { thread, usage }) => {
    const { database, project_id, memory } = request
    const { file, fields } = await receiveForm(request, ZIP_BYTES_MAX)
    const { user, meta } = await takeFields(thread, project_id, fields)
    const files = await readSkillZip(file, (bytes) => memory.hold(file.length + 2 * bytes + STORE_BYTES))
    const head = await readHead(thread, project_id, files)
    const store = ({ sha256, bytes }: SkillFile) =>
      storeBlobWithinQuota(usage, request, sha256, [bytes], bytes.length)
    const { json, known } = await createSkill(database, project_id, { user, meta, files, ...head }, store)
    return answer(reply, mayRead(request) ? json : withFields(json, { user_id: 'null' }), known ? 200 : 201)
  },
})

/** The upload of a skill. Forms are taken nowhere else, hence the scope. */
export const uploadSkillRoute: Operation = (app, parts) =>
  app.register(async (scope: AppServer) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('multipart/form-data', (_request, payload, done) => done(null, payload))
    scope.addContentTypeParser('*', (_request, _payload, done) =>
      done(
        new AnnalsError(
          'unsupported_media_type',
          'The body must be a form, with Content-Type: multipart/form-data.',
        ),
      ),
    )
    postSkill(scope, parts)
  })

/** The fields of the form, checked like those of a body. */
async function takeFields(
  thread: WorkThread,
  project_id: string,
  { meta = 'null', ...others }: Record<string, string>,
) {
  const text = JSON.stringify(others)
  const body = Buffer.from(`${text.slice(0, -1)}${text === '{}' ? '' : ','}"meta":${meta}}`)
  const outcome = await thread.run(project_id, 'takeBody', 'createSkill', body)
  if (outcome.stage === 'taken') return outcome.taken as ReturnType<typeof takeSkill>
  if (outcome.stage !== 'reading') throw revived(outcome.error)
  throw new AnnalsError(
    'invalid_request',
    `/meta must be a JSON object that can be stored. ${outcome.error.message}`,
  )
}

async function readHead(thread: WorkThread, project_id: string, files: readonly SkillFile[]) {
  const { path, bytes, is_text } = files.find((file) => isSkillMd(file.path))!
  if (!is_text) throw wrongZip(`${path} is not UTF-8`)
  const head = await thread.run(project_id, 'skillHead', bytes.toString('utf8', 0, 64 * 1024))
  if ('wrong' in head) throw wrongZip(`${path} ${head.wrong}`)
  return head
}
