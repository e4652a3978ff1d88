import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf } from '../http/operation.js'
import type { ModuleRoutes } from '../module.js'
import { type SessionParts, sessionRoutes } from './session_routes.js'
import { Session } from './session_schema.js'
import { taskRoutes } from './task_routes.js'

export const allSessionRoutes = (parts: SessionParts): ModuleRoutes => ({
  project: allOf(sessionRoutes(parts), taskRoutes),
  schemas: [Session],
  links: {
    createSession: { session_id: DATA_ID },
    copySession: { session_id: '$response.body#/data/new_session_id' },
  },
})
