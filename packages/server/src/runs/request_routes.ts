import { PageOf } from '@annals/kits/contract/schema.js'
import { notFound } from '@annals/kits/errors.js'
import { itemsOf, withFields } from '@annals/kits/http/answer/answer.js'
import { answerScannedList, Cursors } from '@annals/kits/http/answer/page_answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { parseFilter } from '@annals/kits/http/request/validate.js'
import { SCANNED_MAX } from '@annals/kits/lists/scanned.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { reaches, reachOfList } from '../access/reach.js'
import { FenceHeaders } from '../log/event_schema.js'
import { mayRead } from '../projects/authenticate.js'
import { listRequests, listRuns, OPEN_REQUEST, READ_REQUEST, RESOLVE_REQUESTS } from './run_queries.js'
import { RequestsQuery, RUN_BODIES, RunItem, RunsQuery } from './run_schema.js'
import { accepted, changeUnderFence, type RunParts, told, withinQuota } from './runs.js'

const operation = operationsOf('Runs')

/** Bytes of a resolution's event without the body. */
const RESOLUTION_BYTES = 256

type Resolutions = ReturnType<(typeof RUN_BODIES)['resolveRequests'][1]>

export const requestRoutes = (parts: RunParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/requests',
      id: 'openRequest',
      body: RUN_BODIES.openRequest,
      summary: 'Ask for an approval or an answer',
      description:
        'Appends an event `annals.request` and opens the request, until it is resolved or expires. With an `id`, a retry opens nothing. Numbers of a call that RFC 8785 cannot hold exactly are refused.',
      headers: FenceHeaders,
      status: 201,
      returns: 'The request.',
      data: Type.Ref('RunnerRequest'),
      errors: ['fenced', 'quota_exceeded', 'idempotency_key_reused'],
      json: async (request, _reply, { asked, bytes }) => {
        const { project_id, params } = request
        const store = () => changeUnderFence(request, OPEN_REQUEST, ...asked)
        const [{ added }, json] = await withinQuota<{ added: number }>(parts, request, bytes, store)
        if (added > 0) told(parts, project_id, [params.session_id], { isLog: true })
        return mayRead(request) ? json : withFields(json, HIDDEN_ANSWER)
      },
    }),

    operation({
      call: 'GET /requests',
      id: 'listRequests',
      reach: 'narrowed',
      summary: "List the project's requests",
      description: `By \`created_at\`, across sessions. A page looks at ${SCANNED_MAX} requests at most, so with a rare filter it may be short and has a \`next_cursor\`.`,
      querystring: RequestsQuery,
      returns: 'A page of requests.',
      data: PageOf(Type.Ref('RunnerRequest')),
      handle: async (request, reply) => {
        const { state = 'open', user, session_id, time_desc = false } = request.query
        const [by, ...of] = (await reachOfList(request, session_id?.toLowerCase())) ?? []
        const cursors = new Cursors('requests', request.project_id, state, user, session_id, time_desc)
        const list = listRequests(state, time_desc ? 'desc' : 'asc', by)
        const more = [user ?? null, ...of]
        return answerScannedList(request, reply, cursors, request.query, list, more, (items) =>
          request.shows?.(sessionsOf(items)),
        )
      },
    }),

    operation({
      call: 'GET /requests/:request_id',
      id: 'getRequest',
      reach: 'narrowed',
      summary: 'Read a request',
      returns: 'The request.',
      data: Type.Ref('RunnerRequest'),
      json: async (request) => {
        const { json, session_id } = await readReached(request, request.params.request_id)
        request.shows?.([session_id!])
        return json!
      },
    }),

    operation({
      call: 'POST /requests/:request_id/resolve',
      id: 'resolveRequest',
      scope: 'resolve',
      reach: 'narrowed',
      body: RUN_BODIES.resolveRequest,
      summary: 'Answer a request',
      description:
        'The first answer wins, and appends an event `annals.resolution`; later ones get 409 `resolved` with the decision. With an `id`, a retry gets the first answer again. To approve a call, send its `call_sha256`, so exactly the approved call runs.',
      returns: 'The request, resolved.',
      data: Type.Ref('RunnerRequest'),
      errors: ['resolved', 'quota_exceeded', 'idempotency_key_reused'],
      json: async (request, _reply, body) => {
        const { request_id } = request.params
        if (request.grant!.narrow) await readReached(request, request_id)
        const [json] = await resolve(parts, request, body, request_id)
        return json!
      },
    }),

    operation({
      call: 'POST /requests/resolve',
      id: 'resolveRequests',
      body: RUN_BODIES.resolveRequests,
      summary: 'Answer several requests, all or none',
      description:
        'Up to 20 requests of the project, in one transaction. If one is refused, none is resolved, and `msg` names the index.',
      returns: 'The requests, resolved, in the order sent.',
      data: Type.Object({ items: Type.Array(Type.Ref('RunnerRequest')) }),
      errors: ['request_not_found', 'resolved', 'quota_exceeded', 'idempotency_key_reused'],
      json: async (request, _reply, body) => itemsOf(await resolve(parts, request, body)),
    }),

    operation({
      call: 'GET /runs',
      id: 'listRuns',
      reach: 'narrowed',
      summary: 'List sessions by the state of their run',
      description: `The latest first. A page looks at ${SCANNED_MAX} sessions (waiting: open requests) at most, so with a rare filter it may be short and has a \`next_cursor\`. A session whose state changes during the walk may be missed.`,
      querystring: RunsQuery,
      returns: 'A page of sessions.',
      data: PageOf(RunItem),
      handle: async (request, reply) => {
        const { state } = request.query
        const filter = parseFilter('filter_by_configs', request.query.filter_by_configs)
        const cursors = new Cursors('runs', request.project_id, state, filter)
        const [by, ...of] = (await reachOfList(request)) ?? []
        const list = listRuns(state, by)
        const query = { ...request.query, time_desc: true }
        const more = [filter ?? null, ...of]
        return answerScannedList(request, reply, cursors, query, list, more, (items) =>
          request.shows?.(sessionsOf(items), 'listed'),
        )
      },
    }),
  )

/** @throws AnnalsError request_not_found: the token does not reach the session of the request, or there is none */
async function readReached(request: FastifyRequest, request_id: string) {
  const { database, project_id } = request
  const [row] = await database.query(READ_REQUEST, [project_id, request_id])
  if (!row || !(await reaches(request, row.session_id!))) throw notFound('request')
  return row
}

/** Of requests, and of the sessions of a list, as JSON. */
function sessionsOf(items: readonly string[]): string[] {
  return items.flatMap(
    (item) => /^\{(?:"id":"[0-9a-f-]+",)?"session_id":"([0-9a-f-]+)"/.exec(item)?.[1] ?? [],
  )
}

/** `request_id`: of the only resolution, if that does not name its request. */
async function resolve(
  parts: RunParts,
  request: FastifyRequest,
  { resolutions, event_ids, bytes }: Resolutions,
  request_id: string | null = null,
): Promise<string[]> {
  const { database, project_id } = request
  const list = request_id === null ? '/resolutions' : undefined
  const sent = [project_id, request_id, resolutions, plainArray(event_ids)]
  const store = async () => accepted((await call(database, RESOLVE_REQUESTS, ...sent))!, undefined, list)
  const most = bytes + RESOLUTION_BYTES * event_ids.length
  type Head = { added: number; sessions: string[] }
  const [{ sessions }, json] = await withinQuota<Head>(parts, request, most, store)
  told(parts, project_id, sessions, { isLog: true })
  request.shows?.(sessions)
  const items = JSON.parse(json) as string[]
  return mayRead(request) ? items : items.map((item) => withFields(item, HIDDEN_QUESTION))
}

/** Hidden from a key that may not read: what others answered, or asked. */
const HIDDEN_ANSWER = { decision: undefined, answer: undefined, by: undefined }
const HIDDEN_QUESTION = { call: undefined, call_sha256: undefined, text: undefined, options: undefined }
