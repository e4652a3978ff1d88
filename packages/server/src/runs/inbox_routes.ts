import { streamResponse } from '@annals/kits/contract/responses.js'
import { Empty, PageOf } from '@annals/kits/contract/schema.js'
import { invalidRequest, notFound } from '@annals/kits/errors.js'
import { answer, logReadBytes, pageText, withFields } from '@annals/kits/http/answer/answer.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { rewrittenText } from '@annals/kits/http/request/read_body.js'
import { PAGE_LIMIT_DEFAULT } from '@annals/kits/limits.js'
import type { FastifyReply } from 'fastify'
import Type from '#typebox'
import { blobMissing } from '../log/append/blob_places.js'
import { fenceOf } from '../log/append_within_quota.js'
import { FenceHeaders } from '../log/event_schema.js'
import { acceptsStream, drained, follow, openStream } from '../log/follow/event_stream.js'
import { runOf, type Subscription } from '../log/follow/feed.js'
import { mayRead } from '../projects/authenticate.js'
import { refuseTail } from '../projects/within_quotas.js'
import { ADD_INPUT, LIST_INPUTS, READ_FRAMES, READ_PLACE, WITHDRAW_INPUT } from './run_queries.js'
import { AddedInput, InboxQuery, RUN_BODIES, TailHeaders, WithdrawQuery } from './run_schema.js'
import { accepted, callFor, changeUnderFence, type RunParts, refusalIn, told, withinQuota } from './runs.js'

const operation = operationsOf('Runs')

export const inboxRoutes = (parts: RunParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/inbox',
      id: 'addInput',
      scope: 'inbox',
      body: RUN_BODIES.addInput,
      summary: 'Send input to a session',
      description:
        "Input is a future entry: it is checked like an append, but stored outside the log, so the runner's `If-Match` and prompt cache stay valid. The runner appends it with `apply` in `POST …/entries`. With an `id`, a retry adds nothing.",
      headers: FenceHeaders,
      status: 201,
      returns: 'It was added, or it was known.',
      data: AddedInput,
      errors: ['fenced', 'quota_exceeded', 'idempotency_key_reused', 'blob_missing'],
      json: async (request, _reply, { id, json, bytes, blobs }) => {
        const { project_id, grant } = request
        const { session_id } = request.params
        // The runner that stores it may refer to any attachment of the project.
        if (grant!.narrow && blobs.length > 0)
          throw invalidRequest(
            'An input sent with a token cannot refer to attachments. Append the entry instead.',
          )
        const fence = fenceOf(request)
        const store = async () => {
          const answer = await callFor(request, ADD_INPUT, fence ?? null, json)
          const missing = blobs.find(({ sha256 }) => sha256 === refusalIn(answer)?.sha256)
          if (missing) throw blobMissing(missing)
          return accepted(answer, fence)
        }
        type Head = { added?: never; seq?: number; hooks?: string[] }
        const [{ seq, hooks }, input] = await withinQuota<Head>(parts, request, bytes, store)
        if (seq !== undefined) return `{"id":"${id}","state":"applied","seq":${seq}}`
        told(parts, project_id, [session_id], { isWork: true })
        if (hooks) parts.onInput(project_id, hooks)
        const [state] = /"state":"\w+"/.exec(input)!
        const shown = mayRead(request) ? input : withFields(input, { reason: undefined })
        return `{"id":"${id}",${state},"input":${shown}}`
      },
    }),

    operation({
      call: 'GET /session/:session_id/inbox',
      id: 'readInbox',
      summary: "Read a session's inbox, or follow its run",
      description:
        'Inputs in order of arrival. With `Accept: text/event-stream`, the same path streams the events of the run: `event: input`, `event: lease` and `event: request`, each with its state at the time of sending, and with `id: <place>`, after which `Last-Event-ID` resumes.',
      querystring: InboxQuery,
      headers: TailHeaders,
      returns: 'A page of inputs.',
      data: PageOf(Type.Ref('InboxInput')),
      errors: ['quota_exceeded'],
      extend: streamResponse,
      handle: async (request, reply) => {
        const { project_id, query, params } = request
        const { session_id } = params
        if (request.method === 'GET' && acceptsStream(request.headers.accept)) {
          const other = Object.keys(query)[0]
          if (other !== undefined)
            throw invalidRequest(`Query parameter ${other} pages a list; a stream takes none.`)
          await placeOf(reply, session_id)
          refuseTail(request, parts.usage)
          const subscription = parts.feed.subscribe(project_id, runOf(session_id), -1)
          const seen = Number(request.headers['last-event-id'] ?? 0)
          return openStream(parts, request, reply, subscription, () =>
            follow(request, subscription, framesOf(reply, session_id, subscription, seen)),
          )
        }
        const { state = 'pending', limit = PAGE_LIMIT_DEFAULT, cursor } = query
        const cursors = new Cursors('inbox', project_id, session_id, state)
        const after = cursor === undefined ? 0 : Number(cursors.read(cursor))
        await placeOf(reply, session_id)
        await request.memory.hold(logReadBytes(request))
        const page = [project_id, session_id, after, limit + 1, state]
        const rows = await request.database.query(LIST_INPUTS, page)
        const shown = rows.slice(0, limit)
        const next = Number(rows[0]?.found ?? 0) > shown.length ? cursors.write(shown.at(-1)!.place!) : ''
        const items = shown.map(({ json }) => json!)
        return answer(reply, pageText(items, next))
      },
    }),

    operation({
      call: 'DELETE /session/:session_id/inbox/:input_id',
      id: 'withdrawInput',
      scope: 'inbox',
      querystring: WithdrawQuery,
      summary: 'Withdraw an input',
      description: 'Withdraws or rejects an input. An input that was already withdrawn stays so.',
      headers: FenceHeaders,
      returns: 'It was withdrawn.',
      data: Empty,
      errors: ['input_not_found', 'not_pending', 'fenced'],
      json: async (request) => {
        const { project_id, params, query } = request
        // It is stored, so rules of redaction are for it as for a body.
        const { reason } = JSON.parse(
          await rewrittenText(request, JSON.stringify({ reason: query.reason ?? null })),
        ) as { reason: string | null }
        await changeUnderFence(request, WITHDRAW_INPUT, params.input_id, reason)
        told(parts, project_id, [params.session_id])
      },
    }),
  )

/** Where a run stands. `left_ms`: until the lease ends; undefined: there is none. @throws AnnalsError session_not_found */
async function placeOf({ request }: FastifyReply, session_id: string) {
  const [row] = await request.database.query(READ_PLACE, [request.project_id, session_id])
  if (!row) throw notFound('session')
  const left_ms = row.left_ms === null ? undefined : Number(row.left_ms)
  return { place: Number(row.place), fence: Number(row.fence), left_ms }
}

/** Sends what happened in a run after a place, and once the end of a lease that nobody released. */
function framesOf(
  reply: FastifyReply,
  session_id: string,
  subscription: Subscription,
  from: number,
): () => Promise<number | undefined> {
  const { raw, request } = reply
  let seen = from
  // The fence of the lease whose end was told.
  let ended: number | undefined
  return async () => {
    const { place, fence, left_ms } = await placeOf(reply, session_id)
    // After a restore, places begin anew.
    if (seen > place) seen = 0
    while (seen < place && !subscription.ended) {
      const rows = await request.database.query(READ_FRAMES, [request.project_id, session_id, seen])
      for (const { place: at, event, json } of rows) {
        const data = request.mask ? await request.mask(json!) : json
        if (!raw.write(`id: ${at}\nevent: ${event}\ndata: ${data}\n\n`)) await drained(raw, subscription)
        seen = Number(at)
      }
      if (rows.length === 0) seen = place
    }
    subscription.seen_seq = place
    if (left_ms === undefined || left_ms > 0) return left_ms
    if (ended !== fence) raw.write(`event: lease\ndata: {"state":"expired","fence":${fence}}\n\n`)
    ended = fence
    return undefined
  }
}
