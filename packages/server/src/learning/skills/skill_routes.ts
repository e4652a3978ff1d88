import { Readable } from 'node:stream'
import { byteResponses } from '@annals/kits/contract/responses.js'
import { PageOf } from '@annals/kits/contract/schema.js'
import { AnnalsError, invalidRequest, notFound } from '@annals/kits/errors.js'
import {
  answer,
  answerChunks,
  piecesStream,
  sendChunks,
  withFields,
} from '@annals/kits/http/answer/answer.js'
import { answerPage, Cursors } from '@annals/kits/http/answer/page_answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { allOf, type Operation, operationsOf } from '@annals/kits/http/operation.js'
import { type BodyReader, readForms, takeBody } from '@annals/kits/http/request/read_body.js'
import type { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import { contentType, isSkillMd } from '@annals/learning'
import Type from '#typebox'
import { READ_BYTES, STORE_BYTES } from '../../blobs/blob_store.js'
import { type PublicUrlMaker, publicUrl } from '../../blobs/public_urls.js'
import { storeBlobWithinQuota } from '../../blobs/store_within_quota.js'
import { mayRead } from '../../projects/authenticate.js'
import type { UsageDirectory } from '../../projects/usage.js'
import { LEARNING_BODIES, takeSkill } from '../learning_bodies.js'
import {
  ListSkillsQuery,
  SKILL_FIELD_BYTES_MAX,
  SkillFileContent,
  SkillFileQuery,
  ZIP_BYTES_MAX,
} from './skill_schema.js'
import { readSkillZip, type SkillFile, writeZip, wrongZip } from './skill_zip.js'
import {
  createSkill,
  excludeSkill,
  findSkills,
  includeSkill,
  listSpaceSkills,
  readSkill,
  requireWritten,
  type StoredFile,
  skillFiles,
} from './skills.js'

export interface SkillParts extends BodyReader {
  thread: WorkThread
  usage: UsageDirectory
  urls: PublicUrlMaker
  erasure: Erasure
}

const operation = operationsOf('Skills')
const inSpace = operationsOf('Learning spaces')

const postSkill = ({ thread, usage }: SkillParts) =>
  operation({
    call: 'POST /agent_skills',
    id: 'createSkill',
    body_bytes_max: ZIP_BYTES_MAX + SKILL_FIELD_BYTES_MAX,
    summary: 'Upload a skill',
    description:
      'A zip in the Agent Skills format: SKILL.md at its top level or in its only folder, with a name and a description in front matter, and at most 200 files. It belongs to a user, who is created on first use, or to the project; each has at most one skill of a name. Uploading the same skill again stores nothing.',
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
    handle: async (request, reply) => {
      const { project_id, memory } = request
      const [file] = request.attachments ?? []
      if (request.body === undefined) throw invalidRequest('The body must be a form.')
      const { user, meta } = takeBody(request, takeSkill)
      const { buffer, byteOffset, length } = file!.bytes
      const zip = Buffer.from(buffer, byteOffset, length)
      const files = await readSkillZip(zip, (bytes) => memory.hold(zip.length + 2 * bytes + STORE_BYTES))
      const head = await readHead(thread, project_id, files)
      const store = ({ sha256, bytes }: SkillFile) =>
        storeBlobWithinQuota(usage, request, sha256, [bytes], bytes.length, bytes.length)
      const { json, known } = await createSkill(request, { user, meta, ...head }, files, store)
      return answer(reply, mayRead(request) ? json : withFields(json, { user_id: 'null' }), known ? 200 : 201)
    },
  })

/** The upload of a skill. Forms are taken nowhere else, hence the scope. */
const uploadSkillRoute =
  (parts: SkillParts): Operation =>
  (app) =>
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
      postSkill(parts)(scope)
    })

async function readHead(thread: WorkThread, project_id: string, files: readonly SkillFile[]) {
  const { path, bytes, is_text } = files.find((file) => isSkillMd(file.path))!
  if (!is_text) throw wrongZip(`${path} is not UTF-8`)
  const head = await thread.run(project_id, 'skillHead', bytes.toString('utf8', 0, 64 * 1024))
  if ('wrong' in head) throw wrongZip(`${path} ${head.wrong}`)
  return head
}

export const skillRoutes = (parts: SkillParts) =>
  allOf(
    uploadSkillRoute(parts),

    operation({
      call: 'GET /agent_skills',
      id: 'listSkills',
      summary: "List the project's skills",
      description:
        'Written skills, and learnt ones with an active statement, in order of `created_at`, without their files.',
      querystring: ListSkillsQuery,
      returns: 'A page of skills.',
      data: PageOf(Type.Ref('ListedSkill')),
      handle: async (request, reply) => {
        const { user, time_desc = false } = request.query
        const cursors = new Cursors('skills', request.project_id, time_desc, user)
        return answerPage(reply, cursors, request.query, (position) => findSkills(request, user, position))
      },
    }),

    operation({
      call: 'GET /agent_skills/:skill_id/file',
      id: 'getSkillFile',
      summary: 'Read a file of a skill',
      description:
        'UTF-8 text comes as `content`. Any other file comes as a `url` that serves its bytes without an API key for some minutes, until the skill is deleted.',
      querystring: SkillFileQuery,
      returns: 'The file.',
      data: SkillFileContent,
      errors: ['skill_file_not_found'],
      handle: async (request, reply) => {
        const { project_id, params, query } = request
        const [file] = await skillFiles(request, params.skill_id, query.file_path)
        const asset = { project_id, owner_id: params.skill_id, sha256: file!.sha256! }
        const signed = file!.is_text ? undefined : await publicUrl(parts.urls, request, asset, query.expire)
        await request.memory.hold(READ_BYTES)
        return sendChunks(reply, contentOf(file!, signed?.url))
      },
    }),

    operation({
      call: 'GET /agent_skills/:skill_id/download_zip',
      id: 'downloadSkill',
      summary: 'Download a skill',
      description: 'All of its files as a zip.',
      returns: 'The zip.',
      extend: (documented) => byteResponses(documented, { 200: 'The zip.' }, 'application/zip'),
      handle: async (request, reply) => {
        const { params } = request
        const { name, created_at } = await readSkill(request, params.skill_id)
        const files = await skillFiles(request, params.skill_id)
        await request.memory.hold(READ_BYTES)
        reply.header('content-type', 'application/zip')
        reply.header('content-disposition', `attachment; filename="${name}.zip"`)
        if (request.method === 'HEAD') return reply.send(Readable.from([]))
        return reply.send(piecesStream(request, writeZip(files, new Date(created_at))))
      },
    }),

    operation({
      call: 'GET /agent_skills/:skill_id',
      id: 'getSkill',
      summary: 'Read a skill',
      description: 'With the index of its files.',
      returns: 'The skill.',
      data: Type.Ref('Skill'),
      json: async (request) => (await readSkill(request, request.params.skill_id)).json,
    }),

    operation({
      call: 'DELETE /agent_skills/:skill_id',
      id: 'deleteSkill',
      summary: 'Delete a skill',
      description: 'Deletes its files with it, and removes it from all learning spaces.',
      returns: 'It was deleted.',
      errors: ['skill_is_learnt'],
      json: async (request) => {
        await requireWritten(request, request.params.skill_id)
        const erased = await parts.erasure.erase(request, 'skill', [request.params.skill_id])
        if (!erased.skills) throw notFound('skill')
      },
    }),

    inSpace({
      call: 'POST /learning_spaces/:learning_space_id/skills',
      id: 'includeSkill',
      body: LEARNING_BODIES.includeSkill,
      summary: 'Include a skill in a learning space',
      description:
        "A written skill can be in any number of spaces. A user's space takes skills of that user and of the project.",
      status: 201,
      returns: 'The skill in the space.',
      data: Type.Ref('SpaceSkill'),
      also: { 200: 'It was there already.' },
      errors: ['skill_not_found', 'skill_is_learnt', 'user_mismatch', 'quota_exceeded'],
      handle: async (request, reply, { skill_id }) => {
        const { json, known } = await includeSkill(request, request.params.learning_space_id, skill_id)
        return answer(reply, json, known ? 200 : 201)
      },
    }),

    inSpace({
      call: 'GET /learning_spaces/:learning_space_id/skills',
      id: 'listSpaceSkills',
      summary: 'List the skills of a learning space',
      description:
        'Skills that were included, and learnt ones with an active statement, in order of `created_at`.',
      returns: 'The skills.',
      data: Type.Array(Type.Ref('Skill')),
      handle: async (request, reply) =>
        answerChunks(reply, listSpaceSkills(request, request.params.learning_space_id)),
    }),

    inSpace({
      call: 'DELETE /learning_spaces/:learning_space_id/skills/:skill_id',
      id: 'excludeSkill',
      summary: 'Remove a skill from a learning space',
      description: 'The skill itself stays.',
      returns: 'It is not in the space.',
      errors: ['skill_is_learnt'],
      json: async (request) => {
        await excludeSkill(request, request.params.learning_space_id, request.params.skill_id)
      },
    }),
  )

async function* contentOf({ path, mime, read }: StoredFile, url: string | undefined): AsyncGenerator<string> {
  yield `{"path":${JSON.stringify(path)},"mime":${JSON.stringify(mime)},"url":${JSON.stringify(url ?? null)},"content":`
  if (url !== undefined) return yield 'null}'
  yield `{"type":"${contentType(path, mime)}","raw":"`
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for await (const chunk of read()) yield JSON.stringify(decoder.decode(chunk, { stream: true })).slice(1, -1)
  yield '"}}'
}
