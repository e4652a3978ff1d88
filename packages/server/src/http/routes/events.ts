import Type from '#typebox'
import { AddEventBody, AppendHeaders, ListEventsQuery } from '../../contract/event.js'
import { responses } from '../../contract/responses.js'
import { NoQuery, PageOf } from '../../contract/schema.js'
import { SessionParams } from '../../contract/session.js'
import { ENTRY_PAGE_LIMIT_DEFAULT } from '../../limits.js'
import { readLog } from '../../log/read_log.js'
import { answer } from '../answer.js'
import { answerChunks } from '../answer_chunks.js'
import type { AppParts, AppServer } from '../app_parts.js'
import { idempotencyOf, ifMatchOf, markReplayed } from '../append_headers.js'
import { takeEvent } from '../bodies.js'
import { Cursors } from '../cursor.js'
import { appendWithinQuota } from '../quotas.js'
import { takeBody } from '../taken_body.js'
import { entriesPage, readPageRange, readPageStart } from './page_answer.js'

/** Events of a session: add, list. */
export function eventRoutes(app: AppServer, parts: AppParts): void {
  app.post(
    '/session/:session_id/events',
    {
      config: { appends: true },
      schema: {
        operationId: 'addEvent',
        summary: 'Add a structured event to a session',
        description:
          "Stored behind the session's last entry, and answered when it is durable. Messages and events share one numbering, `seq`.",
        tags: ['Events'],
        params: SessionParams,
        querystring: NoQuery,
        headers: AppendHeaders,
        body: AddEventBody,
        response: responses({
          description: 'The event as it is stored.',
          data: Type.Ref('SessionEvent'),
          body: true,
          idempotent: true,
          errors: ['quota_exceeded', 'session_not_found', 'seq_conflict'],
        }),
      },
    },
    async (request, reply) => {
      const outcome = await appendWithinQuota(parts, request, {
        project_id: request.project_id,
        session_id: request.params.session_id,
        kind: 'event',
        entries: [takeBody(request, takeEvent)],
        if_match: ifMatchOf(request),
        idempotency: idempotencyOf(request),
      })
      markReplayed(reply, outcome.replayed)
      return answer(reply, outcome.entries[0]!.json)
    },
  )

  app.get(
    '/session/:session_id/events',
    {
      schema: {
        operationId: 'listEvents',
        summary: "List a session's events",
        description: 'In order of `seq`.',
        tags: ['Events'],
        params: SessionParams,
        querystring: ListEventsQuery,
        response: responses({
          description: 'A page of events.',
          data: PageOf(Type.Ref('SessionEvent')),
          errors: ['invalid_cursor', 'session_not_found', 'seq_ahead'],
        }),
      },
    },
    async (request, reply) => {
      const { type, limit = ENTRY_PAGE_LIMIT_DEFAULT, time_desc = false } = request.query
      const { project_id } = request
      const { session_id } = request.params
      const cursors = new Cursors('events', project_id, session_id, time_desc, type)
      const start = readPageStart(cursors, request.query)
      const page = {
        project_id,
        session_id,
        kind: 'event' as const,
        type,
        time_desc,
        limit: limit + 1,
        ...(await readPageRange(request.database, { project_id, session_id }, start)),
      }
      const entries = readLog(request.database, page, 'event', () => !reply.raw.destroyed)
      return answerChunks(reply, entriesPage(entries, limit, cursors))
    },
  )
}
