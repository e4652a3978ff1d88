import Type from '#typebox'
import { usageJson } from '../http/admission/quotas.js'
import type { ModuleRoutes } from '../http/module.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { allOf, operationsOf } from '../http/operation.js'
import type { AppParts } from '../http/service_context.js'
import { AuditEntry, adminRoutes, auditRoutes } from './admin_routes.js'
import { OPERATORS, Project, Token } from './project_schema.js'
import { readQuotas } from './projects.js'
import { readDays, readModelTokens } from './usage_days.js'
import { Usage, UsageQuery } from './usage_schema.js'

const DESCRIPTION =
  'Figures are at most one second old, or for a very large project twenty times as old as counting it takes. Tails are those of the node that answers. Figures by day lack what other nodes stored within the last 15 seconds.'
const USAGE = {
  description: DESCRIPTION,
  querystring: UsageQuery,
  returns: 'Usage, with the quotas.',
  data: Type.Ref('Usage'),
}

async function readUsage(
  { usage, feed, database, config }: AppParts,
  project_id: string,
  days = 30,
): Promise<string> {
  const own = { database: database.of(project_id), project_id }
  const quotas = await readQuotas(own)
  const counted = await usage.read(project_id)
  await usage.days.write(project_id)
  const tokens = await readModelTokens(own, config.model_tokens_per_day_max)
  const by_day = await readDays(own, days, counted.statement_days)
  return usageJson(counted, feed.tailsOf(project_id), tokens, quotas, by_day)
}

const usageRoutes = operationsOf('Service')({
  call: 'GET /usage',
  id: 'getUsage',
  summary: "Read the project's usage and quotas",
  ...USAGE,
  json: ({ project_id, query }, _reply, parts) => readUsage(parts, project_id, query.days),
})

const adminUsageRoutes = operationsOf(
  'Administration',
  OPERATORS,
)({
  call: 'GET /projects/:project_id/usage',
  id: 'getProjectUsage',
  summary: "Read a project's usage and quotas",
  ...USAGE,
  json: ({ params, query }, _reply, parts) => readUsage(parts, params.project_id, query.days),
})

export const PROJECT_ROUTES: ModuleRoutes = {
  project: usageRoutes,
  admin: allOf(adminRoutes, adminUsageRoutes, auditRoutes),
  schemas: [AuditEntry, Project, Token, Usage],
  links: {
    createProject: { project_id: '$response.body#/data/project/id' },
    createToken: { project_id: '$request.path.project_id', token_id: DATA_ID },
  },
}
