import type { RequestTrace, Tracing } from '../../tracing/tracing.js'
import type { AppServer } from '../app_server.js'

/** One span per request, from its headers until it is answered or its connection is gone. */
export function traceRequests(app: AppServer, tracing: Tracing): void {
  const traces = new WeakMap<object, RequestTrace>()
  app.addHook('onRequest', (request, reply, done) => {
    const traced = tracing.request(request.method, request.routeOptions.url, request.id, request.headers)
    traces.set(request, traced)
    reply.raw.once('close', () =>
      traced.end({
        status: reply.raw.headersSent ? reply.raw.statusCode : undefined,
        project_id: request.project_id || undefined,
      }),
    )
    traced.enter(done)
  })
  // The end of a body is an event of the connection, which belongs to no request.
  app.addHook('preValidation', (request, _reply, done) => traces.get(request)!.enter(done))
}
