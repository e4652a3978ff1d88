import { refuseHeaders } from '../admission/refuse_headers.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'
import type { AppServer } from '../app_server.js'

/** One structured line per request, when it is answered: never a token, a query string or a payload. */
export function logRequests(app: AppServer): void {
  app.decorateRequest('project_id', '')
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    done(refuseHeaders(request.raw))
  })
  // Nobody is left to answer: a caller who gave up, or a client who closed a tail.
  app.addHook('onRequestAbort', async (request) => {
    request.log.info(
      {
        project_id: request.project_id || undefined,
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
      },
      'the caller disconnected',
    )
  })
  app.addHook('onResponse', (request, reply, done) => {
    request.log.info(
      {
        project_id: request.project_id || undefined,
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
        status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime * 1000) / 1000,
      },
      'request',
    )
    done()
  })
}
