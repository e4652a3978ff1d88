import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { PageOf } from '../contract/schema.js'
import { appendWithinQuota } from '../http/admission/quotas.js'
import { answer } from '../http/answer/answer.js'
import { answerEntries } from '../http/answer/blob_bytes.js'
import { entriesPage, readPageRange } from '../http/answer/page_answer.js'
import type { AppServer } from '../http/app_server.js'
import { idempotencyOf, ifMatchOf, markReplayed } from '../http/request/append_headers.js'
import { takeEvent } from '../http/request/bodies.js'
import { Cursors } from '../http/request/cursor.js'
import { takeBody } from '../http/request/taken_body.js'
import type { AppParts } from '../http/service_context.js'
import { ENTRY_PAGE_LIMIT_DEFAULT } from '../limits.js'
import { SessionParams } from '../sessions/session_schema.js'
import { AddEventBody, AppendHeaders, ListEventsQuery } from './event_schema.js'
import { LogReader } from './read/read_log.js'

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
          "Stored after the session's last entry, and acknowledged once it is durable. Messages and events share one numbering, `seq`.",
        tags: ['Events'],
        params: SessionParams,
        headers: AppendHeaders,
        body: AddEventBody,
        response: responses({
          description: 'The stored event.',
          data: Type.Ref('SessionEvent'),
          body: true,
          idempotent: true,
          errors: ['quota_exceeded', 'session_not_found', 'seq_conflict', 'blob_missing'],
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
      const { range, seen_seq } = readPageRange(cursors, request.query)
      const session = { project_id, session_id }
      const log = new LogReader(request.database, session, seen_seq, () => !reply.raw.destroyed)
      const entries = log.read('event', { kind: 'event', type, ...range, time_desc, limit: limit + 1 })
      return answerEntries(
        reply,
        entriesPage(entries, limit, (seq) => cursors.write(String(seq))),
      )
    },
  )
}
