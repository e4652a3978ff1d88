import Type from '#typebox'
import { PageOf } from '../contract/schema.js'
import { Cursors } from '../http/answer/page_answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { answerLogPage } from './answer_log.js'
import { LOG_BODIES } from './append_bodies.js'
import { type AppendParts, appendWithinQuota, markReplayed } from './append_within_quota.js'
import { AppendHeaders, ListEventsQuery } from './event_schema.js'

const operation = operationsOf('Events')

export const eventRoutes = (parts: AppendParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/events',
      config: { appends: true },
      id: 'addEvent',
      scope: 'append',
      body: LOG_BODIES.addEvent,
      summary: 'Add a structured event to a session',
      description:
        "Stored after the session's last entry, and acknowledged once it is durable. Messages and events share one numbering, `seq`.",
      headers: AppendHeaders,
      returns: 'The stored event.',
      data: Type.Ref('SessionEvent'),
      errors: ['quota_exceeded', 'seq_conflict', 'blob_missing'],
      json: async (request, reply, event) => {
        const outcome = await appendWithinQuota(parts, request, {
          session_id: request.params.session_id,
          kind: 'event',
          entries: [event],
        })
        markReplayed(reply, outcome.replayed)
        return outcome.entries[0]!.json
      },
    }),

    operation({
      call: 'GET /session/:session_id/events',
      id: 'listEvents',
      summary: "List a session's events",
      description: 'In order of `seq`.',
      querystring: ListEventsQuery,
      returns: 'A page of events.',
      data: PageOf(Type.Ref('SessionEvent')),
      errors: ['seq_ahead', 'log_diverged'],
      handle: async (request, reply) => {
        const { project_id, params, query } = request
        const { type, time_desc = false } = query
        const cursors = new Cursors('events', project_id, params.session_id, time_desc, type)
        return answerLogPage(reply, 'event', cursors, query)
      },
    }),
  )
