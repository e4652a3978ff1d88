import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf } from '../http/operation.js'
import { compactSession } from '../log/compaction_routes.js'
import { TimelineEvent, TimelineItem, TimelineMessage } from '../log/entry_schema.js'
import { eventRoutes } from '../log/event_routes.js'
import { SessionEvent } from '../log/event_schema.js'
import { messageRoutes } from '../log/message_routes.js'
import { Message } from '../log/message_schema.js'
import { retractionRoutes } from '../log/retraction_routes.js'
import { timelineRoutes } from '../log/timeline_routes.js'
import type { ModuleRoutes } from '../module.js'
import { sessionRoutes } from './session_routes.js'
import { Session } from './session_schema.js'
import { taskRoutes } from './task_routes.js'

export const SESSION_ROUTES: ModuleRoutes = {
  project: allOf(
    sessionRoutes,
    eventRoutes,
    messageRoutes,
    timelineRoutes,
    retractionRoutes,
    compactSession,
    taskRoutes,
  ),
  schemas: [Session, SessionEvent, Message, TimelineMessage, TimelineEvent, TimelineItem],
  links: {
    createSession: { session_id: DATA_ID },
    copySession: { session_id: '$response.body#/data/new_session_id' },
    addMessage: { session_id: '$request.path.session_id', message_id: DATA_ID },
  },
}
