import Type from '#typebox'
import { usageJson } from '../http/admission/quotas.js'
import { operationsOf } from '../http/operation.js'
import type { AppParts } from '../http/service_context.js'
import { OPERATORS, ProjectParams } from './project_schema.js'
import { readQuotas } from './projects.js'
import { readDays, readModelTokens } from './usage_days.js'
import { UsageQuery } from './usage_schema.js'

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
  const own = database.of(project_id)
  const quotas = await readQuotas(own, project_id)
  const counted = await usage.read(project_id)
  await usage.days.write(project_id)
  const tokens = await readModelTokens(own, project_id, config.model_tokens_per_day_max)
  const by_day = await readDays(own, project_id, days, counted.statement_days)
  return usageJson(counted, feed.tailsOf(project_id), tokens, quotas, by_day)
}

/** Usage and quotas of the key's project. */
export const usageRoutes = operationsOf('Service')({
  call: 'GET /usage',
  id: 'getUsage',
  summary: "Read the project's usage and quotas",
  ...USAGE,
  json: ({ project_id, query }, _reply, parts) => readUsage(parts, project_id, query.days),
})

/** The same of any project, for the operator. */
export const adminUsageRoutes = operationsOf(
  'Administration',
  OPERATORS,
)({
  call: 'GET /projects/:project_id/usage',
  id: 'getProjectUsage',
  summary: "Read a project's usage and quotas",
  ...USAGE,
  params: ProjectParams,
  errors: ['project_not_found'],
  json: ({ params, query }, _reply, parts) => readUsage(parts, params.project_id, query.days),
})
