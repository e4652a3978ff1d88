import type { IncomingHttpHeaders } from 'node:http'
import { VERSION } from '../version.js'
import { bearerToken } from './admission/authenticate.js'
import { fetchFrom } from './answer/fetch_in_process.js'
import type { AppServer } from './app_server.js'

/** Most bytes of a request: more than a tool takes, and little enough to be parsed at once. */
const BODY_BYTES_MAX = 65_536
/** Nobody resolves it: requests to it stay in this process. */
const HERE = 'http://annals.invalid'

/**
 * The Model Context Protocol at /mcp, for whoever has a key that reads. Its tools call this service's own API with the
 * caller's key, so everything that holds for a request of the API holds for theirs.
 */
export function mcpRoutes(app: AppServer, cors_origins: string | undefined): void {
  // Loaded for the first client: most services have none, and it takes a while.
  let answering: Promise<Answer> | undefined
  const load = async () => (await import('@annals/mcp')).mcpOverHttp(VERSION, cors_origins?.split(',') ?? [])
  app.post(
    '/mcp',
    { bodyLimit: BODY_BYTES_MAX, config: { scope: 'read' }, schema: { hide: true } },
    async (request, reply) => {
      answering ??= load()
      const answer = await answering
      const asked = new Request(`${HERE}/mcp`, { method: 'POST', headers: headersOf(request.headers) })
      const response = await answer(asked, request.body, {
        url: HERE,
        token: bearerToken(request)!,
        fetch: fetchFrom(app, request),
        may_write: request.grant!.scopes.has('write'),
      })
      for (const [name, value] of response.headers) reply.header(name, value)
      return reply.code(response.status).send(await response.text())
    },
  )
}

function headersOf(headers: IncomingHttpHeaders): Headers {
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) given.set(name, String(value))
  return given
}

type Answer = Awaited<ReturnType<typeof import('@annals/mcp')['mcpOverHttp']>>
