import type { AppServer } from '../http/app_server.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf } from '../http/operation.js'
import type { ModuleRoutes } from '../module.js'
import type { LogParts } from './append_within_quota.js'
import { compactSession } from './compaction_routes.js'
import { TimelineEvent, TimelineItem, TimelineMessage } from './entry_schema.js'
import { eventRoutes } from './event_routes.js'
import { SessionEvent } from './event_schema.js'
import { messageRoutes } from './message_routes.js'
import { Message } from './message_schema.js'
import { retractionRoutes } from './retraction_routes.js'
import { timelineRoutes } from './timeline_routes.js'

export function logRoutes(parts: LogParts): ModuleRoutes {
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
