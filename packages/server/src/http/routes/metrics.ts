import { DatabaseAway } from '../../database/database.js'
import { AnnalsError } from '../../errors.js'
import { AppendInDoubt } from '../../log/append_request.js'
import type { AppParts, AppServer } from '../app_parts.js'

/** Counts the requests of the routes that are added behind it, and answers Prometheus. */
export function metricsRoutes(app: AppServer, { metrics, worker }: AppParts): void {
  const { registry } = metrics
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    metrics.answered(route, request.method, reply.statusCode, reply.elapsedTime)
    done()
  })
  app.addHook('onError', async (_request, _reply, error) => metrics.failed(nameOf(error)))
  worker?.shareMetrics(registry)
  app.get('/metrics', async (_request, reply) => {
    const text = await (worker ?? { metricsOfAll: () => registry.metrics() }).metricsOfAll()
    reply.header('content-type', registry.contentType)
    return text === undefined
      ? reply.code(503).send('# A worker did not answer. Ask again.\n')
      : reply.send(text)
  })
}

function nameOf(error: Error & { statusCode?: number }): string {
  if (error instanceof AppendInDoubt || (error instanceof DatabaseAway && error.in_doubt)) return 'in_doubt'
  if (error instanceof AnnalsError) return error.error
  // What the framework refuses has a status; what has none is a fault of ours.
  return error.statusCode !== undefined && error.statusCode < 500
    ? `http_${error.statusCode}`
    : 'internal_error'
}
