import { PageOf } from '@annals/kits/contract/schema.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import Type from '#typebox'
import { answerLogPage, versionOfLog } from './answer_log.js'
import { LOG_BODIES, readTokenTable } from './append_bodies.js'
import { type AppendParts, appendWithinQuota, type LogParts, markReplayed } from './append_within_quota.js'
import { compactSession } from './compaction_routes.js'
import { TimelineEvent, TimelineItem, TimelineMessage } from './entry_schema.js'
import { AppendHeaders, ListEventsQuery, SessionEvent } from './event_schema.js'
import { messageRoutes } from './message_routes.js'
import { Message } from './message_schema.js'
import { retractionRoutes } from './retraction_routes.js'
import { timelineRoutes } from './timeline_routes.js'

const operation = operationsOf('Events')

const eventRoutes = (parts: AppendParts) =>
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
      version: versionOfLog,
      handle: async (request, reply) => {
        const { project_id, params, query } = request
        const { type, time_desc = false } = query
        const cursors = new Cursors('events', project_id, params.session_id, time_desc, type)
        return answerLogPage(reply, 'event', cursors, query)
      },
    }),
  )

export async function logRoutes(parts: LogParts): Promise<ModuleRoutes> {
  await readTokenTable()
  return {
    project: allOf(
      eventRoutes(parts),
      messageRoutes(parts),
      timelineRoutes(parts),
      retractionRoutes(parts),
      compactSession(parts),
    ),
    // An open tail would keep a stopping service running for ever.
    open: (app: AppServer) => {
      app.addHook('preClose', async () => parts.feed.close())
    },
    schemas: [SessionEvent, Message, TimelineMessage, TimelineEvent, TimelineItem],
    links: {
      addMessage: { session_id: '$request.path.session_id', message_id: DATA_ID },
    },
  }
}
