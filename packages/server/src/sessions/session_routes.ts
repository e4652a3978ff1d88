import { PageOf, pageQuery, Strict, Timestamp } from '@annals/kits/contract/schema.js'
import { invalidRequest, notFound } from '@annals/kits/errors.js'
import { answer, sentField, withFields } from '@annals/kits/http/answer/answer.js'
import { answerFilteredList, Cursors } from '@annals/kits/http/answer/page_answer.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { parseFilter } from '@annals/kits/http/request/validate.js'
import type { FilteredList, ListFilter, ListPosition } from '@annals/kits/lists/listed.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import { memberTexts } from '@annals/messages/json'
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from '#typebox'
import { narrowedFilters, refuseSession } from '../access/reach.js'
import { fenceOf, idempotencyOf, markReplayed } from '../log/append_within_quota.js'
import { FenceHeaders, IdempotencyHeaders } from '../log/event_schema.js'
import { mayRead } from '../projects/authenticate.js'
import type { UsageDirectory } from '../projects/usage.js'
import { roomFor } from '../projects/within_quotas.js'
import { copySession } from './copy_session.js'
import { LAST_ACTIVITY } from './last_activity.js'
import { SESSIONS_BY_ACTIVITY } from './last_activity_queries.js'
import { listSessionsByPrefix, type PrefixFilter, SESSIONS } from './session_queries.js'
import { CopiedSession, ListSessionsQuery, MergedConfigs, SESSION_BODIES, Session } from './session_schema.js'
import { createSession, mergeConfigs, readSession, replaceConfigs, setExpiry } from './sessions.js'

const operation = operationsOf('Sessions')

interface SessionParts extends Pick<Kits, 'changes' | 'erasure' | 'longWork' | 'isServing'> {
  usage: UsageDirectory
}

type SessionFilter = Static<typeof ListSessionsQuery> & { session_id?: string }

/** @throws AnnalsError invalid_request, beside a prefix of ids */
function refuseOtherFilters(query: Record<string, unknown>): void {
  const other = ['user', 'filter_by_configs', 'parent', 'order_by'].find((name) => query[name] !== undefined)
  if (other) throw invalidRequest(`Query parameter id_prefix cannot be combined with ${other}.`)
}

/** The list of sessions whose id begins with a text, or is one, in the order of ids. */
function sessionsByPrefix(narrowest: PrefixFilter): FilteredList {
  const page = (filter: ListFilter, position: ListPosition) =>
    listSessionsByPrefix(narrowest, filter, position)
  const name = `sessions from ${narrowest.prefix}${narrowest.session_id ?? ''}`
  return { ...SESSIONS, order: { name, page } }
}

const sessionRoutes = ({ changes, usage, erasure, longWork, isServing }: SessionParts) =>
  allOf(
    operation({
      call: 'GET /session',
      id: 'listSessions',
      reach: 'narrowed',
      summary: "List the project's sessions",
      description:
        'In order of `created_at`, or of the last activity; with `id_prefix`, of the id. A walk by cursor returns every session that exists throughout it exactly once.',
      querystring: ListSessionsQuery,
      returns: 'A page of sessions.',
      data: PageOf(Type.Ref('Session')),
      errors: ['being_prepared'],
      handle: async (request, reply) => {
        const { id_prefix } = request.query
        if (id_prefix !== undefined) refuseOtherFilters(request.query)
        const query = await narrowedFilters<SessionFilter>(request, request.query)
        const document = parseFilter('filter_by_configs', query.filter_by_configs)
        const { session_id } = query
        const answerList = (list: FilteredList) =>
          answerFilteredList(request, reply, list, query, document, (rows) =>
            request.shows?.(
              rows.map(({ id }) => id),
              'listed',
            ),
          )
        const narrowest = {
          prefix: id_prefix?.toLowerCase() ?? '',
          session_id,
          user: query.user,
          parent: query.parent,
        }
        if (id_prefix !== undefined || session_id !== undefined)
          return answerList(sessionsByPrefix(narrowest))
        if (query.order_by !== LAST_ACTIVITY.name) return answerList(SESSIONS)
        await changes.prepare(request, LAST_ACTIVITY.name)
        return answerList(SESSIONS_BY_ACTIVITY)
      },
    }),

    operation({
      call: 'POST /session',
      id: 'createSession',
      scope: 'append',
      reach: 'narrowed',
      body: SESSION_BODIES.createSession,
      summary: 'Create a session',
      description:
        'All fields are optional; an absent body counts as `{}`. The user is created on first use. If the session of `use_uuid` already exists, a key without the scope `read` gets back the fields that it sent.',
      headers: IdempotencyHeaders,
      status: 201,
      returns: 'The new session.',
      data: Type.Ref('Session'),
      also: { 200: 'The existing session with this `use_uuid`; the request agrees with it.' },
      errors: ['session_not_found', 'session_exists', 'quota_exceeded'],
      handle: async (request, reply, { user, use_uuid, parent }) => {
        await refuseSession(request, { user, use_uuid, parent })
        const created = await createSession(request.database, {
          project_id: request.project_id,
          user: user ?? undefined,
          use_uuid: use_uuid?.toLowerCase(),
          body: request.bodyText,
          idempotency: idempotencyOf(request),
          room: roomFor(usage, request),
        })
        markReplayed(reply, created.replayed)
        if (!created.existed) return answer(reply, created.json, 201)
        return answer(reply, mayRead(request) ? created.json : asSent(request, created.json))
      },
    }),

    operation({
      call: 'GET /session/:session_id',
      id: 'getSession',
      summary: 'Read a session',
      returns: 'The session.',
      data: Type.Ref('Session'),
      json: async (request) => readSession(request, request.params.session_id),
    }),

    operation({
      call: 'DELETE /session/:session_id',
      id: 'deleteSession',
      scope: 'erase',
      summary: 'Delete a session with its log',
      description: 'This also deletes all sessions below it.',
      returns: 'It was deleted.',
      json: async (request) => {
        const { sessions } = await erasure.erase(request, 'session', [request.params.session_id])
        if (sessions === 0) throw notFound('session')
      },
    }),

    operation({
      call: 'PATCH /session/:session_id',
      id: 'updateSession',
      body: SESSION_BODIES.updateSession,
      summary: 'Set when a session expires',
      description: 'This updates `updated_at`. A key without the scope `read` gets back what it sent.',
      returns: 'The session.',
      data: Type.Ref('Session'),
      json: async (request) => {
        const { params, bodyText } = request
        const session = await setExpiry(request, params.session_id, bodyText)
        return mayRead(request) ? session : asSent(request, session)
      },
    }),

    operation({
      call: 'POST /session/:session_id/copy',
      id: 'copySession',
      body: SESSION_BODIES.copySession,
      summary: 'Copy a session with its log, or fork it',
      description:
        "The copy is the session as it was at one moment: same user, same configs, same entries in the same order with the same seqs and times, under new ids. With `up_to_seq` it is a fork: the log up to there. `user` and `configs` replace those of the original. More than 2,000 entries or 4 MiB are copied in short steps, at about a minute for a million entries, and the copy is invisible until it is complete. If a message's meta changes in the meantime, either version may be copied. If the caller disconnects, a copy with an `Idempotency-Key` or a `use_uuid` is still finished; a copy without either is dropped.",
      headers: IdempotencyHeaders,
      returns: 'It was copied.',
      data: CopiedSession,
      errors: ['seq_ahead', 'session_exists', 'quota_exceeded'],
      json: async (request, reply, { up_to_seq, user, use_uuid }) => {
        const copied = await copySession(request.database, longWork, {
          project_id: request.project_id,
          session_id: request.params.session_id,
          up_to_seq,
          user: user ?? undefined,
          use_uuid: use_uuid?.toLowerCase(),
          body: request.bodyText,
          idempotency: idempotencyOf(request),
          room: roomFor(usage, request),
          isWanted: () => !reply.raw.destroyed,
          isServing,
          dependents: erasure.dependentsOf('session'),
        })
        markReplayed(reply, copied.replayed)
        return copied.json
      },
    }),

    operation({
      call: 'GET /session/:session_id/configs',
      id: 'getConfigs',
      summary: "Read a session's configs",
      description: 'The session, including its configs.',
      returns: 'The session.',
      data: Type.Ref('Session'),
      json: async (request) => readSession(request, request.params.session_id),
    }),

    operation({
      call: 'PUT /session/:session_id/configs',
      id: 'replaceConfigs',
      body: SESSION_BODIES.replaceConfigs,
      summary: "Replace a session's configs",
      headers: FenceHeaders,
      errors: ['fenced'],
      returns: 'The configs were replaced.',
      json: async (request) => {
        await replaceConfigs(request, request.params.session_id, request.bodyText, fenceOf(request))
      },
    }),

    operation({
      call: 'PATCH /session/:session_id/configs',
      id: 'mergeConfigs',
      body: SESSION_BODIES.mergeConfigs,
      summary: "Merge into a session's configs",
      description:
        'Merges the top level; a null deletes its key. Concurrent merges lose nothing. A key without the scope `read` gets back what it sent.',
      headers: FenceHeaders,
      errors: ['fenced'],
      returns: 'The merged configs.',
      data: MergedConfigs,
      json: async (request) => {
        const { params, bodyText } = request
        const merged = await mergeConfigs(request, params.session_id, bodyText, fenceOf(request))
        const configs = mayRead(request) ? merged : sentField(request, 'configs', '{}')
        return `{"configs":${configs}}`
      },
    }),
  )

const None = Type.Literal(0)

const ObservingStatus = Type.Object({
  observed: None,
  in_process: None,
  pending: None,
  updated_at: Timestamp('When anything in the session last changed.'),
})

const Flushed = Type.Object({ status: None, errmsg: Type.Literal('') })

const NO_TASKS = 'This service does not extract tasks from sessions, so there are none.'

/** Operations of existing clients on tasks, with true answers of a service that extracts none. */
const taskRoutes = allOf(
  operation({
    call: 'GET /session/:session_id/observing_status',
    id: 'getObservingStatus',
    summary: 'Count messages by state of task extraction',
    description: NO_TASKS,
    returns: 'Count messages by state of task extraction',
    data: ObservingStatus,
    json: async (request) => {
      const session = await readSession(request, request.params.session_id)
      const updated_at = memberTexts(session).get('updated_at')!
      return `{"observed":0,"in_process":0,"pending":0,"updated_at":${updated_at}}`
    },
  }),

  operation({
    call: 'GET /session/:session_id/task',
    id: 'listTasks',
    summary: "List a session's tasks",
    description: NO_TASKS,
    querystring: Strict(pageQuery()),
    returns: "List a session's tasks",
    data: PageOf(Type.Object({})),
    json: async (request) => {
      await readSession(request, request.params.session_id)
      // No page has another after it, so no cursor is one of this list.
      if (request.query.cursor !== undefined)
        new Cursors('tasks', request.project_id, request.params.session_id).read(request.query.cursor)
      return '{"items":[],"has_more":false,"next_cursor":""}'
    },
  }),

  operation({
    call: 'POST /session/:session_id/flush',
    id: 'flushSession',
    body: SESSION_BODIES.flushSession,
    summary: 'Wait for task extraction',
    description: NO_TASKS,
    returns: 'Wait for task extraction',
    data: Flushed,
    json: async (request) => {
      await readSession(request, request.params.session_id)
      return '{"status":0,"errmsg":""}'
    },
  }),
)

export const allSessionRoutes = (parts: SessionParts): ModuleRoutes => ({
  project: allOf(sessionRoutes(parts), taskRoutes),
  schemas: [Session],
  links: {
    createSession: { session_id: DATA_ID },
    copySession: { session_id: '$response.body#/data/new_session_id' },
  },
})

/** The answer for an existing session, as if the request had created it. */
function asSent(request: FastifyRequest, session: string): string {
  return withFields(session, {
    configs: sentField(request, 'configs', '{}'),
    disable_task_tracking: sentField(request, 'disable_task_tracking', 'false'),
    ...(sentField(request, 'user', 'null') === 'null' && { user_id: 'null' }),
    ...(sentField(request, 'expires_in_s', 'null') === 'null' && { expires_in_s: undefined }),
    ...(sentField(request, 'parent', 'null') === 'null' && { parent_id: undefined }),
    forked_from: undefined,
    forked_at_seq: undefined,
    updated_at: memberTexts(session).get('created_at')!,
  })
}
