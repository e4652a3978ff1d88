import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { Empty, PageOf } from '../contract/schema.js'
import { notFound } from '../errors.js'
import { roomFor } from '../http/admission/quotas.js'
import { answer } from '../http/answer/answer.js'
import { mayRead, sentField, withFields } from '../http/answer/only_sent.js'
import { answerFilteredList } from '../http/answer/page_answer.js'
import type { AppServer } from '../http/app_server.js'
import { idempotencyOf, markReplayed } from '../http/request/append_headers.js'
import { takeCopy, takeSession, takeWhole } from '../http/request/bodies.js'
import { parseFilter } from '../http/request/json_parameters.js'
import { takeBody } from '../http/request/taken_body.js'
import type { AppParts } from '../http/service_context.js'
import { memberTexts } from '../json/slices.js'
import { IdempotencyHeaders } from '../log/event_schema.js'
import { copySession } from './copy_session.js'
import { LAST_ACTIVITY } from './last_activity.js'
import { SESSIONS_BY_ACTIVITY } from './last_activity_queries.js'
import { SESSIONS } from './session_queries.js'
import {
  CopiedSession,
  CopySessionBody,
  CreateSessionBody,
  ListSessionsQuery,
  SessionParams,
  UpdateSessionBody,
} from './session_schema.js'
import { createSession, readSession, setExpiry } from './sessions.js'

/** Sessions: list, create, read, delete, copy. */
export function sessionRoutes(app: AppServer, parts: AppParts): void {
  app.get(
    '/session',
    {
      schema: {
        operationId: 'listSessions',
        summary: "List the project's sessions",
        description:
          'In order of `created_at`, or of the last activity. A walk by cursor returns every session that exists throughout it exactly once.',
        tags: ['Sessions'],
        querystring: ListSessionsQuery,
        response: responses({
          description: 'A page of sessions.',
          data: PageOf(Type.Ref('Session')),
          errors: ['invalid_cursor', 'being_prepared'],
        }),
      },
    },
    async (request, reply) => {
      const document = parseFilter('filter_by_configs', request.query.filter_by_configs)
      if (request.query.order_by !== LAST_ACTIVITY.name)
        return answerFilteredList(request, reply, SESSIONS, request.query, document)
      await parts.changes.prepare(request.database, request.project_id, LAST_ACTIVITY.name)
      return answerFilteredList(request, reply, SESSIONS_BY_ACTIVITY, request.query, document)
    },
  )

  app.post(
    '/session',
    {
      schema: {
        operationId: 'createSession',
        summary: 'Create a session',
        description:
          'All fields are optional; an absent body counts as `{}`. The user is created on first use. If the session of `use_uuid` already exists, a key without the scope `read` gets back the fields that it sent.',
        tags: ['Sessions'],
        headers: IdempotencyHeaders,
        body: CreateSessionBody,
        response: responses({
          status: 201,
          description: 'The new session.',
          data: Type.Ref('Session'),
          also: {
            200: 'The existing session with this `use_uuid`; the request agrees with it.',
          },
          body: true,
          idempotent: true,
          errors: ['session_not_found', 'session_exists', 'quota_exceeded'],
        }),
      },
    },
    async (request, reply) => {
      const { user, use_uuid } = takeBody(request, takeSession)
      const created = await createSession(request.database, {
        project_id: request.project_id,
        user: user ?? undefined,
        use_uuid: use_uuid?.toLowerCase(),
        body: request.bodyText,
        idempotency: idempotencyOf(request),
        room: roomFor(parts.usage, request),
      })
      markReplayed(reply, created.replayed)
      if (!created.existed) return answer(reply, created.json, 201)
      return answer(reply, mayRead(request) ? created.json : asSent(request, created.json))
    },
  )

  app.get(
    '/session/:session_id',
    {
      schema: {
        operationId: 'getSession',
        summary: 'Read a session',
        tags: ['Sessions'],
        params: SessionParams,
        response: responses({
          description: 'The session.',
          data: Type.Ref('Session'),
          errors: ['session_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(reply, await readSession(request.database, request.project_id, request.params.session_id)),
  )

  app.delete(
    '/session/:session_id',
    {
      schema: {
        operationId: 'deleteSession',
        summary: 'Delete a session with its log',
        description: 'And with all sessions below it.',
        tags: ['Sessions'],
        params: SessionParams,
        response: responses({ description: 'It was deleted.', data: Empty, errors: ['session_not_found'] }),
      },
    },
    async (request, reply) => {
      const { project_id, params } = request
      const { sessions } = await parts.erasure.erase(request.database, project_id, 'session', [
        params.session_id,
      ])
      if (sessions === 0) throw notFound('session')
      return answer(reply, '{}')
    },
  )

  updateRoute(app)
  copyRoute(app, parts)
}

function updateRoute(app: AppServer): void {
  app.patch(
    '/session/:session_id',
    {
      schema: {
        operationId: 'updateSession',
        summary: 'Set when a session expires',
        description: 'Touches the session. A key without the scope `read` gets back what it sent.',
        tags: ['Sessions'],
        params: SessionParams,
        body: UpdateSessionBody,
        response: responses({
          description: 'The session.',
          data: Type.Ref('Session'),
          body: true,
          errors: ['session_not_found'],
        }),
      },
    },
    async (request, reply) => {
      takeBody(request, takeWhole)
      const { database, project_id, params, bodyText } = request
      const session = await setExpiry(database, project_id, params.session_id, bodyText)
      return answer(reply, mayRead(request) ? session : asSent(request, session))
    },
  )
}

function copyRoute(app: AppServer, parts: AppParts): void {
  const { longWork, isServing } = parts
  app.post(
    '/session/:session_id/copy',
    {
      schema: {
        operationId: 'copySession',
        summary: 'Copy a session with its log, or fork it',
        description:
          "The copy is the session as it was at one moment: same user, same configs, same entries in the same order with the same seqs and times, under new ids. With `up_to_seq` it is a fork: the log up to there. `user` and `configs` give it its own. Where more than 2,000 entries or 4 MiB are copied, this is done in short steps, at about a minute for a million entries, and nobody sees the copy before it is complete. If a message's meta changes meanwhile, either version may be copied. If the caller disconnects, a copy with an `Idempotency-Key` or a `use_uuid` is finished; one without is dropped.",
        tags: ['Sessions'],
        params: SessionParams,
        headers: IdempotencyHeaders,
        body: CopySessionBody,
        response: responses({
          description: 'It was copied.',
          data: CopiedSession,
          body: true,
          idempotent: true,
          errors: ['session_not_found', 'seq_ahead', 'session_exists', 'quota_exceeded'],
        }),
      },
    },
    async (request, reply) => {
      const { up_to_seq, user, use_uuid } = takeBody(request, takeCopy)
      const copied = await copySession(request.database, longWork, {
        project_id: request.project_id,
        session_id: request.params.session_id,
        up_to_seq,
        user: user ?? undefined,
        use_uuid: use_uuid?.toLowerCase(),
        body: request.bodyText,
        idempotency: idempotencyOf(request),
        room: roomFor(parts.usage, request),
        isWanted: () => !reply.raw.destroyed,
        isServing,
        dependents: parts.erasure.dependentsOf('session'),
      })
      markReplayed(reply, copied.replayed)
      return answer(reply, copied.json)
    },
  )
}

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
