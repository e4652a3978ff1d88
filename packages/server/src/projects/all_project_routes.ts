import type { ModuleRoutes } from '../http/module.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf } from '../http/operation.js'
import { adminRoutes } from './admin_routes.js'
import { AuditEntry, auditRoutes } from './audit_routes.js'
import { Project, Token } from './project_schema.js'
import { adminUsageRoutes, usageRoutes } from './usage_routes.js'
import { Usage } from './usage_schema.js'

export const PROJECT_ROUTES: ModuleRoutes = {
  project: usageRoutes,
  admin: allOf(adminRoutes, adminUsageRoutes, auditRoutes),
  schemas: [AuditEntry, Project, Token, Usage],
  links: {
    createProject: {
      to: ['changeProject', 'deleteProject', 'createToken', 'listTokens'],
      parameters: { project_id: '$response.body#/data/project/id' },
    },
    createToken: {
      to: ['revokeToken'],
      parameters: { project_id: '$request.path.project_id', token_id: DATA_ID },
    },
  },
}
