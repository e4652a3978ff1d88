import Type from '#typebox'
import { STORE_BYTES } from '../../blobs/blob_store.js'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { storeBlobWithinQuota } from '../../http/admission/quotas.js'
import { answer } from '../../http/answer/answer.js'
import { mayRead, withFields } from '../../http/answer/only_sent.js'
import type { AppServer } from '../../http/app_server.js'
import { type Operation, operationsOf } from '../../http/operation.js'
import { takeBody, takeSkill } from '../../http/request/bodies.js'
import { readForms } from '../../http/request/read_body.js'
import type { WorkThread } from '../../http/work_thread/work_thread.js'
import { SKILL_FIELD_BYTES_MAX, ZIP_BYTES_MAX } from './skill_schema.js'
import { isSkillMd, readSkillZip, type SkillFile, wrongZip } from './skill_zip.js'
import { createSkill } from './skills.js'

const postSkill = operationsOf('Skills')({
  call: 'POST /agent_skills',
  id: 'createSkill',
  takes_form: true,
  body_bytes_max: ZIP_BYTES_MAX + SKILL_FIELD_BYTES_MAX,
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
    const [file] = request.attachments ?? []
    if (request.body === undefined) throw invalidRequest('The body must be a form.')
    const { user, meta } = takeBody(request, takeSkill)
    const { buffer, byteOffset, length } = file!.bytes
    const zip = Buffer.from(buffer, byteOffset, length)
    const files = await readSkillZip(zip, (bytes) => memory.hold(zip.length + 2 * bytes + STORE_BYTES))
    const head = await readHead(thread, project_id, files)
    const store = ({ sha256, bytes }: SkillFile) =>
      storeBlobWithinQuota(usage, request, sha256, [bytes], bytes.length, bytes.length)
    const { json, known } = await createSkill({ database, project_id }, { user, meta, files, ...head }, store)
    return answer(reply, mayRead(request) ? json : withFields(json, { user_id: 'null' }), known ? 200 : 201)
  },
})

/** The upload of a skill. Forms are taken nowhere else, hence the scope. */
export const uploadSkillRoute: Operation = (app, parts) =>
  app.register(async (scope: AppServer) => {
    scope.removeAllContentTypeParsers()
    readForms(scope, parts, 'createSkill')
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

async function readHead(thread: WorkThread, project_id: string, files: readonly SkillFile[]) {
  const { path, bytes, is_text } = files.find((file) => isSkillMd(file.path))!
  if (!is_text) throw wrongZip(`${path} is not UTF-8`)
  const head = await thread.run(project_id, 'skillHead', bytes.toString('utf8', 0, 64 * 1024))
  if ('wrong' in head) throw wrongZip(`${path} ${head.wrong}`)
  return head
}
