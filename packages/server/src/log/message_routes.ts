import { notFound } from '@annals/kits/errors.js'
import { logReadBytes, sentField, TEXT_FACTOR } from '@annals/kits/http/answer/answer.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { readForms } from '@annals/kits/http/request/read_body.js'
import { bodyValidator, parseParameter } from '@annals/kits/http/request/validate.js'
import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import { lacksBytes, type MessageFormat } from '@annals/messages'
import type { EditStrategy } from '@annals/messages/context'
import type { Reasoning } from '@annals/messages/fit'
import Type from '#typebox'
import { answerEntries, sendEntries, withBlobSizes } from '../blobs/blob_bytes.js'
import { PublicUrls } from '../blobs/public_urls.js'
import { mayRead } from '../projects/authenticate.js'
import { logOfPath, readPageRange, versionOfLog } from './answer_log.js'
import type { AppendAnswer } from './append/append_request.js'
import { LOG_BODIES } from './append_bodies.js'
import { appendWithinQuota, fenceOf, type LogParts, markReplayed } from './append_within_quota.js'
import { getContext } from './context_routes.js'
import { AppendHeaders, FenceHeaders } from './event_schema.js'
import { EditStrategies, ListMessagesQuery, MergedMeta, MessagePage, TokenCounts } from './message_schema.js'
import { countSessionTokens, findIds, mergeMessageMeta } from './read/read_log.js'
import { EDITED_BYTES_MAX, type Editing } from './render/message_edits.js'
import { messagePage } from './render/message_page.js'
import { messageParts } from './render/page_renderer.js'

const checkStrategies = bodyValidator(EditStrategies)

const operation = operationsOf('Messages')

const addMessage = ({ appender, usage, thread }: LogParts) =>
  operation({
    call: 'POST /session/:session_id/messages',
    config: { appends: true, attaches_in: 'blob' },
    id: 'addMessage',
    scope: 'append',
    body: LOG_BODIES.addMessage,
    summary: 'Add a message to a session',
    description:
      "`blob` is one complete message in the provider's own format; read in that format, it comes back unchanged. As `multipart/form-data`, the field `payload` is this body, in `acontext` format, and its parts name files of the form in `file_field`.",
    headers: AppendHeaders,
    status: 201,
    returns: 'The stored message.',
    data: Type.Ref('Message'),
    errors: ['quota_exceeded', 'seq_conflict', 'blob_missing'],
    json: async (request, reply, { entry, parts }) => {
      const outcome = await appendWithinQuota({ appender, usage }, request, {
        session_id: request.params.session_id,
        kind: 'message',
        entries: [entry],
      })
      markReplayed(reply, outcome.replayed)
      return withParts(outcome.entries[0]!, parts, request, thread)
    },
  })

export const messageRoutes = (parts: LogParts) =>
  allOf(
    (app) =>
      app.register(async (scope: AppServer) => {
        readForms(scope, parts, 'addMessage')
        addMessage(parts)(scope)
      }),

    operation({
      call: 'GET /session/:session_id/messages',
      id: 'listMessages',
      summary: "List a session's messages in a format",
      description:
        "In order of `seq`. A message in its own format is as it was sent; in another it is valid for that provider. One message may become several items, as tool results do in OpenAI's format; `ids` and `metas` then repeat. In a format with whole turns, items of the Responses API that form one turn of the model become one message, with the id and meta of the first. With `fit=true`, the page can be sent to a provider, like a context. With `with_events=true`, each event of the session is on exactly one page of a walk: events after a page's last message are on that page.",
      querystring: ListMessagesQuery,
      returns: 'A page of messages, or all of them.',
      data: MessagePage,
      errors: ['message_not_found', 'seq_ahead', 'log_diverged'],
      version: versionOfLog,
      handle: async (request, reply) => {
        const { format = 'openai', limit, time_desc = false, with_events = false } = request.query
        const { fit = false, reasoning } = request.query
        const { edit_strategies, pin_editing_strategies_at_message: pin } = request.query
        const { project_id } = request
        const { session_id } = request.params
        const edited = edit_strategies === undefined && pin === undefined ? [] : [edit_strategies, pin]
        const cursors = new Cursors(
          'messages',
          project_id,
          session_id,
          time_desc,
          format,
          with_events,
          ...edited,
        )
        const { range, seen } = readPageRange(cursors, request.query)
        const session = { project_id, session_id }
        const log = logOfPath(reply, seen)
        const hold = (length: number) =>
          request.memory.hold(logReadBytes(request) + EDITED_BYTES_MAX + TEXT_FACTOR * length)
        const page = {
          project_id,
          limit: limit || undefined,
          time_desc,
          with_events,
          range,
          editing: await readEditing(request.database, session, edit_strategies, pin),
          format: format as MessageFormat,
          fit: fit
            ? { reasoning: reasoning as Reasoning | undefined, database: request.database, hold }
            : undefined,
        }
        if (page.editing) await request.memory.hold(logReadBytes(request) + EDITED_BYTES_MAX)
        const urls = request.query.with_asset_public_url
          ? new PublicUrls(parts.urls, request, session, logReadBytes(request) + EDITED_BYTES_MAX)
          : undefined
        const items = messagePage({ log, thread: parts.thread }, page, cursors, urls)
        return page.editing || page.fit ? sendEntries(reply, items, urls) : answerEntries(reply, items, urls)
      },
    }),

    getContext(parts),

    operation({
      call: 'PATCH /session/:session_id/messages/:message_id/meta',
      id: 'mergeMessageMeta',
      body: LOG_BODIES.mergeMessageMeta,
      summary: "Merge into a message's meta",
      description:
        'Merges the top level; a null deletes its key. Concurrent merges lose nothing. A key without the scope `read` gets back what it sent.',
      headers: FenceHeaders,
      returns: 'The merged meta.',
      data: MergedMeta,
      errors: ['message_not_found', 'fenced'],
      json: async (request) => {
        const { session_id, message_id } = request.params
        const of = [session_id, message_id] as const
        const meta = await mergeMessageMeta(request, of, request.bodyText, fenceOf(request))
        return `{"meta":${mayRead(request) ? meta : sentField(request, 'meta', '{}')}}`
      },
    }),

    operation({
      call: 'GET /session/:session_id/token_counts',
      id: 'countTokens',
      summary: "Count the tokens of a session's messages",
      description:
        "Counts everything that is sent: text in o200k_base; images, documents and recordings by their provider's formulas. The count is stored with the session. `counted` is `text` while messages stored by an earlier version are still being recounted in the background: for these, the total has only text, tool calls and tool results.",
      returns: 'The count.',
      data: TokenCounts,
      json: async (request) => {
        return JSON.stringify(await countSessionTokens(request, request.params.session_id))
      },
    }),
  )

/** The message as answered, with the parts of its blob. A message that was read back brings its own blob. */
async function withParts(
  { blob, format, json, id }: AppendAnswer,
  parts: string,
  tenant: Tenant,
  thread: WorkThread,
): Promise<string> {
  const own =
    blob === undefined
      ? parts
      : await messageParts(thread, tenant.project_id, format as MessageFormat, blob, id!)
  return `{"parts":${lacksBytes(own) ? await withBlobSizes(tenant, own) : own},${json.slice(1)}`
}

/** @throws AnnalsError invalid_request, session_not_found, message_not_found */
async function readEditing(
  database: Queryable,
  session: { project_id: string; session_id: string },
  edit_strategies: string | undefined,
  pin_id: string | undefined,
): Promise<Editing | undefined> {
  if (edit_strategies === undefined && pin_id === undefined) return undefined
  const strategies = parseParameter(
    'edit_strategies',
    edit_strategies ?? '[]',
    checkStrategies,
  ) as EditStrategy[]
  if (pin_id === undefined) return { strategies, pin_id, pin_seq: undefined }
  const [pin] = await findIds(database, session, [pin_id])
  if (pin?.type !== null) throw notFound('message')
  return { strategies, pin_id, pin_seq: pin.seq }
}
