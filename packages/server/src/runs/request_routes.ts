import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { reaches } from '../access/reach.js'
import { PageOf } from '../contract/schema.js'
import { AnnalsError, notFound } from '../errors.js'
import { answer, itemsOf, withFields } from '../http/answer/answer.js'
import { Cursors } from '../http/answer/page_answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { parseFilter } from '../http/request/validate.js'
import { PAGE_LIMIT_DEFAULT } from '../limits.js'
import { BEFORE_ALL } from '../lists/listed.js'
import { fenceOf } from '../log/append_within_quota.js'
import { FenceHeaders } from '../log/event_schema.js'
import type { Row } from '../postgres/database.js'
import { call } from '../postgres/stored_function.js'
import { mayRead } from '../projects/authenticate.js'
import { withinRoom } from '../projects/usage.js'
import { roomFor } from '../projects/within_quotas.js'
import {
  FIND_SESSION_OF_REQUEST,
  LIST_REQUESTS,
  OPEN_REQUEST,
  READ_REQUEST,
  REQUESTS_SCANNED_MAX,
  RESOLVE_REQUESTS,
} from './request_queries.js'
import { FIND_RUNS, LIST_NARROWED_RUNS, LIST_RUNS, RUNS_SCANNED_MAX } from './run_queries.js'
import { RequestsQuery, RUN_BODIES, RunItem, RunsQuery } from './run_schema.js'
import { fencedError, type RunParts, told } from './runs.js'

const operation = operationsOf('Runs')

/** Open requests of one session, at most. */
const OPEN_MAX = 1_000
/** What a resolution's event has beside what was sent. */
const RESOLUTION_BYTES = 256

type Resolutions = ReturnType<(typeof RUN_BODIES)['resolveRequests'][1]>
type Caller = Parameters<typeof roomFor>[1]

export const requestRoutes = (parts: RunParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/requests',
      id: 'openRequest',
      body: RUN_BODIES.openRequest,
      summary: 'Ask for an approval or an answer',
      description:
        'Appends an event `annals.request` and opens the request, until somebody resolves it or it expires. With an `id`, a retry opens nothing. Numbers of a call that RFC 8785 cannot hold exactly are refused.',
      headers: FenceHeaders,
      status: 201,
      returns: 'The request.',
      data: Type.Ref('RunnerRequest'),
      errors: ['fenced', 'quota_exceeded', 'idempotency_key_reused'],
      json: async (request, _reply, { json, bytes }) => {
        const { database, project_id } = request
        const { session_id } = request.params
        const fence = fenceOf(request)
        const opened = await within(parts, request, bytes, () =>
          call(database, OPEN_REQUEST, project_id, session_id, fence ?? null, json, OPEN_MAX),
        )
        if (opened === undefined) throw notFound('session')
        if (opened.startsWith('{"refused"')) throw refusedRequest(JSON.parse(opened), fence)
        if (opened.startsWith('{"state":"new"')) told(parts, project_id, [session_id], { isLog: true })
        const asked = opened.slice(opened.indexOf('"request":') + '"request":'.length, -1)
        return mayRead(request) ? asked : withFields(asked, HIDDEN_ANSWER)
      },
    }),

    operation({
      call: 'GET /requests',
      id: 'listRequests',
      reach: 'narrowed',
      summary: "List the project's requests",
      description: `By \`created_at\`, across sessions. A page looks at ${REQUESTS_SCANNED_MAX} requests at most, so with a rare filter it may be short and has a \`next_cursor\`.`,
      querystring: RequestsQuery,
      returns: 'A page of requests.',
      data: PageOf(Type.Ref('RunnerRequest')),
      handle: async (request, reply) => {
        const {
          state = 'open',
          user,
          session_id,
          limit = PAGE_LIMIT_DEFAULT,
          cursor,
          time_desc = false,
        } = request.query
        const reached = await reachedRuns(request, session_id?.toLowerCase())
        const order = time_desc ? 'desc' : 'asc'
        const cursors = new Cursors('requests', request.project_id, state, user, session_id, time_desc)
        const after =
          cursor === undefined
            ? [BEFORE_ALL[order].created_at, BEFORE_ALL[order].id]
            : cursors.read(cursor).split('|')
        const of = reached ? 'some' : session_id === undefined ? 'all' : 'one'
        const rows = await request.database.query(LIST_REQUESTS[`${state}_${order}_of_${of}`], [
          request.project_id,
          ...after,
          limit,
          user ?? null,
          reached ?? session_id ?? null,
        ])
        showSessions(request, rows)
        return sendPage(
          reply,
          cursors,
          rows,
          limit,
          REQUESTS_SCANNED_MAX,
          ({ created_at, id }) => `${created_at}|${id}`,
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
        const { database, project_id, params } = request
        await requireReached(request, params.request_id)
        const [row] = await database.query(READ_REQUEST, [project_id, params.request_id])
        if (!row) throw notFound('request')
        showSessions(request, [row])
        return row.json!
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
        'The first answer wins, and appends an event `annals.resolution`; the next gets 409 `resolved`, which says what was decided. To approve a call, send its `call_sha256`: what was approved is what runs.',
      returns: 'The request, resolved.',
      data: Type.Ref('RunnerRequest'),
      errors: ['resolved', 'quota_exceeded'],
      json: async (request, _reply, { resolutions: [one], bytes }) => {
        const { request_id } = request.params
        await requireReached(request, request_id)
        const resolutions = [{ ...one!, id: request_id }]
        const [json] = await resolve(parts, request, { resolutions, bytes }, false)
        showSessions(request, [{ json: json! }])
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
      errors: ['request_not_found', 'resolved', 'quota_exceeded'],
      json: async (request, _reply, body) => {
        const resolved = await resolve(parts, request, body, true)
        showSessions(
          request,
          resolved.map((json) => ({ json })),
        )
        return itemsOf(resolved)
      },
    }),

    operation({
      call: 'GET /runs',
      id: 'listRuns',
      reach: 'narrowed',
      summary: 'List sessions by the state of their run',
      description: `The latest first. A page looks at ${RUNS_SCANNED_MAX} sessions at most, so with a rare filter it may be short and has a \`next_cursor\`. A session whose state changes during the walk may be missed.`,
      querystring: RunsQuery,
      returns: 'A page of sessions.',
      data: PageOf(RunItem),
      handle: async (request, reply) => {
        const { state, limit = PAGE_LIMIT_DEFAULT, cursor } = request.query
        const filter = parseFilter('filter_by_configs', request.query.filter_by_configs)
        const cursors = new Cursors('runs', request.project_id, state, filter)
        const after =
          cursor === undefined
            ? [BEFORE_ALL.desc.created_at, BEFORE_ALL.desc.id]
            : cursors.read(cursor).split('|')
        const reached = await reachedRuns(request)
        const rows = await request.database.query((reached ? LIST_NARROWED_RUNS : LIST_RUNS)[state], [
          request.project_id,
          ...after,
          limit,
          filter ?? null,
          ...(reached ? [reached] : []),
        ])
        request.shows?.(
          rows.flatMap(({ run, session_id }) => (run ? session_id! : [])),
          'listed',
        )
        const shown = rows.map((row) => ({
          ...row,
          json: row.run && `{"session_id":"${row.session_id}","since":"${row.since}","run":${row.run}}`,
        }))
        return sendPage(
          reply,
          cursors,
          shown as Row[],
          limit,
          RUNS_SCANNED_MAX,
          (row) => `${row.since}|${row.session_id}`,
        )
      },
    }),
  )

/**
 * The sessions with a run that the token of a request reaches, or one of them; undefined: it is a key, which reaches all. So
 * a token's page looks at nothing else, and its cursor says nothing of others.
 */
async function reachedRuns(request: FastifyRequest, session_id?: string): Promise<string[] | undefined> {
  const { database, project_id, grant } = request
  const reach = grant!.narrow?.reach
  if (!reach) return undefined
  if (session_id !== undefined) return (await reaches(request, session_id)) ? [session_id] : []
  if ('session_id' in reach) return [reach.session_id]
  const [statement, of] = 'user' in reach ? [FIND_RUNS.user, reach.user] : [FIND_RUNS.parent, reach.parent]
  return (await database.query(statement, [project_id, of])).map((row) => row.session_id!)
}

/** @throws AnnalsError request_not_found: the token does not reach the session of the request, or there is none */
async function requireReached(request: FastifyRequest, request_id: string): Promise<void> {
  if (!request.grant!.narrow) return
  const { database, project_id } = request
  const [row] = await database.query(FIND_SESSION_OF_REQUEST, [project_id, request_id])
  if (!row || !(await reaches(request, row.session_id!))) throw notFound('request')
}

/** A page of what is shown of the rows that were looked at; another one follows if there may be more. */
function sendPage(
  reply: Parameters<typeof answer>[0],
  cursors: Cursors,
  rows: Row[],
  limit: number,
  scanned_max: number,
  positionOf: (row: Row) => string,
) {
  const items = rows.flatMap(({ json }) => json ?? [])
  // A page that is full, or that stopped at its bytes or at what it may look at, is not the last for sure.
  const has_more = rows.length > 0 && (items.length >= limit || rows.length >= scanned_max)
  const next = has_more ? cursors.write(positionOf(rows.at(-1)!)) : ''
  return answer(reply, `{"items":[${items.join(',')}],"has_more":${has_more},"next_cursor":"${next}"}`)
}

/** How a request begins. */
const REQUEST = /^\{"id":"[0-9a-f-]{36}","session_id":"([0-9a-f-]{36})"/

function showSessions({ shows }: Pick<FastifyRequest, 'shows'>, rows: readonly Row[]): void {
  shows?.(rows.flatMap(({ json }) => REQUEST.exec(json ?? '')?.[1] ?? []))
}

/** Runs what stores an event, within the quota, and counts it. */
function within(parts: RunParts, request: Caller, bytes: number, store: () => Promise<string | null>) {
  const { bytes: reserve, made } = roomFor(parts.usage, request)
  return withinRoom({ ...(reserve && { bytes: reserve }) }, { bytes }, async () => {
    const stored = (await store()) ?? undefined
    if (stored !== undefined && !/^\{"(refused|state":"known)"/.test(stored)) made?.({ entries: 1, bytes })
    return stored
  })
}

async function resolve(
  parts: RunParts,
  request: Caller,
  { resolutions, bytes }: Resolutions,
  isList: boolean,
): Promise<string[]> {
  const { database, project_id } = request
  const json = `[${resolutions.map(({ id, members }) => `{"id":"${id}",${members}}`).join(',')}]`
  const answered = await within(parts, request, bytes + RESOLUTION_BYTES * resolutions.length, () =>
    call(database, RESOLVE_REQUESTS, project_id, json),
  )
  const { refused, sessions, items } = JSON.parse(answered!) as Refusal & {
    sessions: string[]
    items: string[]
  }
  if (refused) throw refusedResolution(JSON.parse(answered!), isList)
  told(parts, project_id, sessions, { isLog: true })
  return mayRead(request) ? items : items.map((item) => withFields(item, HIDDEN_QUESTION))
}

/** What a key that may not read is not told: what others answered, or asked. */
const HIDDEN_ANSWER = { decision: undefined, answer: undefined, by: undefined }
const HIDDEN_QUESTION = { call: undefined, call_sha256: undefined, text: undefined, options: undefined }

interface Refusal {
  refused?: 'missing' | 'resolved' | 'expired' | 'kind' | 'call'
  index: number
  decision?: string
  by?: string | null
  at?: string
  kind?: string
  call_sha256?: string | null
}

function refusedResolution(
  { refused, index, decision, by, at, kind, call_sha256 }: Refusal,
  isList: boolean,
): AnnalsError {
  const place = isList ? `/resolutions/${index}` : ''
  const named = isList ? `${place}: the` : 'The'
  switch (refused) {
    case 'missing':
      return notFound('request', isList ? place : undefined)
    case 'resolved':
      return new AnnalsError(
        'resolved',
        `${named} request was already resolved: ${decision}${by == null ? '' : `, by ${JSON.stringify(by)}`}, at ${at}. Nothing was changed.`,
      )
    case 'expired':
      return new AnnalsError(
        'resolved',
        `${named} request expired at ${at} without an answer. Nothing was changed.`,
      )
    case 'kind':
      return new AnnalsError(
        'invalid_request',
        `${place}/decision must be ${kind === 'question' ? '"answer": the request is a question' : '"approve" or "deny": the request is an approval'}.`,
      )
    default:
      return new AnnalsError(
        'invalid_request',
        call_sha256 == null
          ? `${place}/call_sha256 is given, but the request has no call.`
          : `${place}/call_sha256 must be ${call_sha256}, the digest of the call that was asked for. Read the request again before you approve it.`,
      )
  }
}

function refusedRequest(
  { refused, fence }: { refused: string; fence: number },
  sent: number | undefined,
): AnnalsError {
  if (refused === 'fenced') return fencedError(fence, sent)
  if (refused === 'differs')
    return new AnnalsError(
      'idempotency_key_reused',
      '/id is already the id of another request of this project. Use a new id for a new request.',
    )
  return new AnnalsError(
    'quota_exceeded',
    `The session has ${OPEN_MAX} open requests, which is the limit. Nothing was stored: resolve some.`,
  )
}
