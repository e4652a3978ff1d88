import { bearerToken } from './admission/authenticate.js'
import { fetchFrom } from './answer/fetch_in_process.js'
import type { AppServer } from './app_server.js'
import { McpThread } from './work_thread/mcp_on_thread.js'

/** Most bytes of a request: more than a tool takes, and little enough to be parsed at once. */
const BODY_BYTES_MAX = 65_536

/**
 * The Model Context Protocol at /mcp, for whoever has a key that reads. Its tools call this service's own API with the
 * caller's key, so everything that holds for a request of the API holds for theirs.
 */
export function mcpRoutes(app: AppServer, cors_origins: string | undefined): void {
  const thread = new McpThread(cors_origins?.split(',') ?? [])
  app.addHook('onClose', () => thread.close())
  app.post(
    '/mcp',
    { bodyLimit: BODY_BYTES_MAX, config: { scope: 'read' }, schema: { hide: true } },
    async (request, reply) => {
      const { headers, body, grant, project_id } = request
      const asked = {
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        body,
        token: bearerToken(request)!,
        may_write: grant!.scopes.has('write'),
      }
      const answer = await thread.answer(project_id, asked, fetchFrom(app, request))
      return reply.code(answer.status).headers(answer.headers).send(answer.text)
    },
  )
}
