import Type from '#typebox'
import { usageJson } from '../http/admission/quotas.js'
import { operationsOf } from '../http/operation.js'
import { OPERATORS, ProjectParams } from './project_schema.js'
import { readQuotas } from './projects.js'

const DESCRIPTION =
  'Figures are at most one second old, or for a very large project twenty times as old as counting it takes. Tails are those of the node that answers.'
const USAGE = { description: DESCRIPTION, returns: 'Usage, with the quotas.', data: Type.Ref('Usage') }

/** Usage and quotas of the key's project. */
export const usageRoutes = operationsOf('Service')({
  call: 'GET /usage',
  id: 'getUsage',
  summary: "Read the project's usage and quotas",
  ...USAGE,
  json: async ({ project_id, grant }, _reply, { usage, feed }) => {
    const { quotas, rate_limit_per_second } = grant!
    const limits = { ...quotas, rate_limit_per_second }
    return usageJson(await usage.read(project_id), feed.tailsOf(project_id), limits)
  },
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
  json: async ({ params: { project_id } }, _reply, { usage, feed, database }) => {
    const limits = await readQuotas(database.of('operator'), project_id)
    return usageJson(await usage.read(project_id), feed.tailsOf(project_id), limits)
  },
})
