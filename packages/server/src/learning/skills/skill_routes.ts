import { Readable } from 'node:stream'
import Type from '#typebox'
import { READ_BYTES } from '../../blobs/blob_store.js'
import { byteResponses, responses } from '../../contract/responses.js'
import { Empty, PageOf } from '../../contract/schema.js'
import { notFound } from '../../errors.js'
import { answer } from '../../http/answer/answer.js'
import { sendChunks } from '../../http/answer/answer_chunks.js'
import { piecesStream } from '../../http/answer/answer_pieces.js'
import { answerList, readListCursor } from '../../http/answer/page_answer.js'
import type { AppServer } from '../../http/app_server.js'
import { Cursors } from '../../http/request/cursor.js'
import type { AppParts } from '../../http/service_context.js'
import { PAGE_LIMIT_DEFAULT } from '../../limits.js'
import { ListSkillsQuery, SkillFileContent, SkillFileQuery, SkillParams } from './skill_schema.js'
import { writeZip } from './skill_zip.js'
import { findSkills, readSkill, requireWritten, type StoredFile, skillFiles } from './skills.js'

const TAGS = ['Skills']

/** Skills: list, read, read files, download, delete. */
export function skillRoutes(app: AppServer, { erasure }: AppParts): void {
  listRoute(app)
  fileRoutes(app)

  app.get(
    '/agent_skills/:skill_id',
    {
      schema: {
        operationId: 'getSkill',
        summary: 'Read a skill',
        description: 'With the index of its files.',
        tags: TAGS,
        params: SkillParams,
        response: responses({
          description: 'The skill.',
          data: Type.Ref('Skill'),
          errors: ['skill_not_found'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) =>
      answer(reply, (await readSkill(database, project_id, params.skill_id)).json),
  )

  app.delete(
    '/agent_skills/:skill_id',
    {
      schema: {
        operationId: 'deleteSkill',
        summary: 'Delete a skill',
        description: 'Its files go with it, and it leaves all learning spaces.',
        tags: TAGS,
        params: SkillParams,
        response: responses({
          description: 'It was deleted.',
          data: Empty,
          errors: ['skill_not_found', 'skill_is_learnt'],
        }),
      },
    },
    async ({ database, project_id, params }, reply) => {
      await requireWritten(database, project_id, params.skill_id)
      const erased = await erasure.erase(database, project_id, 'skill', [params.skill_id])
      if (!erased.skills) throw notFound('skill')
      return answer(reply, '{}')
    },
  )
}

function listRoute(app: AppServer): void {
  app.get(
    '/agent_skills',
    {
      schema: {
        operationId: 'listSkills',
        summary: "List the project's skills",
        description:
          'Written ones, and learnt ones of which a statement is active; in order of `created_at`, without their files.',
        tags: TAGS,
        querystring: ListSkillsQuery,
        response: responses({
          description: 'A page of skills.',
          data: PageOf(Type.Ref('ListedSkill')),
          errors: ['invalid_cursor'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, query } = request
      const { user, cursor, limit = PAGE_LIMIT_DEFAULT, time_desc = false } = query
      const cursors = new Cursors('skills', project_id, time_desc, user)
      const position = { time_desc, limit, after: readListCursor(cursors, cursor) }
      return answerList(reply, cursors, () => findSkills(database, project_id, user, position), limit)
    },
  )
}

function fileRoutes(app: AppServer): void {
  app.get(
    '/agent_skills/:skill_id/file',
    {
      schema: {
        operationId: 'getSkillFile',
        summary: 'Read a file of a skill',
        description: 'What is UTF-8 comes as `content`. The bytes of any other file are a blob.',
        tags: TAGS,
        params: SkillParams,
        querystring: SkillFileQuery,
        response: responses({
          description: 'The file.',
          data: SkillFileContent,
          errors: ['skill_not_found', 'skill_file_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, params, query } = request
      const [file] = await skillFiles(database, project_id, params.skill_id, query.file_path)
      await request.memory.hold(READ_BYTES)
      return sendChunks(reply, contentOf(file!))
    },
  )

  app.get(
    '/agent_skills/:skill_id/download_zip',
    {
      schema: {
        operationId: 'downloadSkill',
        summary: 'Download a skill',
        description: 'All of its files as a zip.',
        tags: TAGS,
        params: SkillParams,
        response: byteResponses(
          responses({ description: 'The zip.', data: Type.Object({}), errors: ['skill_not_found'] }),
          { 200: 'The zip.' },
          'application/zip',
        ),
      },
    },
    async (request, reply) => {
      const { database, project_id, params } = request
      const { name, created_at } = await readSkill(database, project_id, params.skill_id)
      const files = await skillFiles(database, project_id, params.skill_id)
      await request.memory.hold(READ_BYTES)
      reply.header('content-type', 'application/zip')
      reply.header('content-disposition', `attachment; filename="${name}.zip"`)
      if (request.method === 'HEAD') return reply.send(Readable.from([]))
      return reply.send(piecesStream(request, writeZip(files, new Date(created_at))))
    },
  )
}

const PROSE = /(^|\/)[^./]+$|\.(md|txt|rst)$/i

/** A file as JSON, a chunk of its text at a time. */
async function* contentOf({ path, mime, is_text, read }: StoredFile): AsyncGenerator<string> {
  yield `{"path":${JSON.stringify(path)},"mime":${JSON.stringify(mime)},"url":null,"content":`
  if (!is_text) return yield 'null}'
  const type =
    mime === 'application/json' ? 'json' : mime === 'text/csv' ? 'csv' : PROSE.test(path) ? 'text' : 'code'
  yield `{"type":"${type}","raw":"`
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for await (const chunk of read()) yield JSON.stringify(decoder.decode(chunk, { stream: true })).slice(1, -1)
  yield '"}}'
}
