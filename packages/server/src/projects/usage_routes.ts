import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { usageJson } from '../http/admission/quotas.js'
import { answer } from '../http/answer/answer.js'
import type { AppServer } from '../http/app_server.js'
import type { AppParts } from '../http/service_context.js'
import { OPERATORS, ProjectParams } from './project_schema.js'
import { readQuotas } from './projects.js'

const DESCRIPTION =
  'Figures are at most one second old, or for a very large project twenty times as old as counting it takes. Tails are those of the node that answers.'

/** Usage and quotas of the key's project. */
export function usageRoutes(app: AppServer, { usage, feed }: AppParts): void {
  app.get(
    '/usage',
    {
      schema: {
        operationId: 'getUsage',
        summary: "Read the project's usage and quotas",
        description: DESCRIPTION,
        tags: ['Service'],
        response: responses({ description: 'Usage, with the quotas.', data: Type.Ref('Usage') }),
      },
    },
    async (request, reply) => {
      const { project_id } = request
      const grant = request.grant!
      const limits = { ...grant.quotas, rate_limit_per_second: grant.rate_limit_per_second }
      return answer(reply, usageJson(await usage.read(project_id), feed.tailsOf(project_id), limits))
    },
  )
}

/** The same of any project, for the operator. */
export function adminUsageRoutes(app: AppServer, { usage, feed, database }: AppParts): void {
  app.get(
    '/projects/:project_id/usage',
    {
      schema: {
        operationId: 'getProjectUsage',
        summary: "Read a project's usage and quotas",
        description: DESCRIPTION,
        ...OPERATORS,
        params: ProjectParams,
        response: responses({
          description: 'Usage, with the quotas.',
          data: Type.Ref('Usage'),
          errors: ['project_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { project_id } = request.params
      const limits = await readQuotas(database.of('operator'), project_id)
      return answer(reply, usageJson(await usage.read(project_id), feed.tailsOf(project_id), limits))
    },
  )
}
