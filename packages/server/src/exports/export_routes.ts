import { Readable } from 'node:stream'
import { EXPORT_FORMATS, type ExportFormat } from '@annals/importers/exporting'
import { OneOf, Strict } from '@annals/kits/contract/schema.js'
import { logReadBytes, piecesStream } from '@annals/kits/http/answer/answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import { inOrders, type WorkThread } from '@annals/kits/threads/work_thread.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from '#typebox'
import { withBlobBytes } from '../blobs/blob_bytes.js'
import { LogReader, UNLIMITED } from '../log/read/read_log.js'
import { readSession } from '../sessions/sessions.js'
import { IDENTIFIER_OF } from './export_queries.js'

/** Memory for the parts of a document that wait until they can be written. */
const HELD_BACK_BYTES = 2 * 1024 * 1024

const FORMAT = Object.assign(OneOf(EXPORT_FORMATS, 'What to write.'), { examples: ['atif'] })

let exports = 0

export const exportRoutes = ({ thread }: { thread: WorkThread }): ModuleRoutes => ({
  project: operationsOf('Sessions')({
    call: 'GET /session/:session_id/export',
    id: 'exportSession',
    summary: 'Export a session in the format of another tool',
    description:
      'The whole session as a file, streamed, without the envelope: `atif`, a trajectory of ATIF 1.6; `openai` or `anthropic`, a line `{ "messages" }` as files for fine-tuning have it; `jsonl`, the session and each item of its timeline on a line each. The end of the file counts, by kind, the contents that the format cannot express: in `omitted`, or for a trajectory in `final_metrics.extra.omitted`. If the connection is closed before the end, the file is not complete.',
    querystring: Strict({ format: FORMAT }),
    returns: 'The file.',
    extend: documented,
    handle: async (request, reply) => {
      const format = request.query.format as ExportFormat
      const session = await readSession(request, request.params.session_id)
      await request.memory.hold(logReadBytes(request) + HELD_BACK_BYTES)
      const user = await userOf(request, session)
      reply.headers({
        'content-type': format === 'jsonl' ? 'application/x-ndjson' : 'application/json; charset=utf-8',
        'content-disposition': `attachment; filename="${request.params.session_id}.${format === 'jsonl' ? 'jsonl' : 'json'}"`,
      })
      if (request.method === 'HEAD') return reply.send(Readable.from([]))
      const texts =
        format === 'jsonl' ? lines(reply, session, user) : written(reply, thread, format, session, user)
      return reply.send(piecesStream(request, withBlobBytes(request, texts)))
    },
  }),
})

function documented(responses: Record<string, unknown>): Record<string, unknown> {
  const success = responses[200] as Record<string, unknown>
  const content = {
    'application/json': { schema: Type.Object({}, { description: 'A trajectory, or a conversation.' }) },
    'application/x-ndjson': { schema: Type.String({ description: 'With `format=jsonl`.' }) },
  }
  return { ...responses, 200: { ...success, content } }
}

async function userOf(request: FastifyRequest, session: string): Promise<string | undefined> {
  const reach = request.grant!.narrow?.reach
  const { user_id } = JSON.parse(session) as { user_id: string | null }
  if (user_id === null || (reach && !('user' in reach))) return undefined
  const [row] = await request.database.query(IDENTIFIER_OF, [request.project_id, user_id])
  return row?.identifier ?? undefined
}

async function* itemsOf({ request, raw }: FastifyReply): AsyncGenerator<string[]> {
  const { database, project_id, params } = request
  const { session_id } = params as { session_id: string }
  const log = new LogReader(database, { project_id, session_id }, undefined, () => !raw.destroyed)
  const all = { kind: undefined, type: undefined, above_seq: 0, below_seq: UNLIMITED, time_desc: false }
  for await (const entries of log.read('item', { ...all, limit: UNLIMITED }))
    yield entries.map(({ json }) => json)
}

async function* lines(reply: FastifyReply, session: string, user: string | undefined) {
  const whose = user === undefined ? '' : `"user":${JSON.stringify(user)},`
  yield `{"kind":"session",${whose}${session.slice(1)}\n`
  for await (const items of itemsOf(reply)) yield `${items.join('\n')}\n`
}

async function* written(
  reply: FastifyReply,
  thread: WorkThread,
  format: Exclude<ExportFormat, 'jsonl'>,
  session: string,
  user: string | undefined,
) {
  const { project_id } = reply.request
  const number = ++exports
  try {
    await thread.run(project_id, 'beginExport', number, format, session, user)
    for await (const items of itemsOf(reply))
      for (const order of inOrders(items, ({ length }) => length))
        yield await thread.run(project_id, 'addToExport', number, order)
    yield await thread.run(project_id, 'endOfExport', number)
  } finally {
    thread.tell('closeExport', number)
  }
}
