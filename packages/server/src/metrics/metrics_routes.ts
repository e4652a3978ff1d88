import { AnnalsError } from '../errors.js'
import type { AppServer } from '../http/app_server.js'
import type { AppParts } from '../http/service_context.js'
import { AppendInDoubt } from '../log/append/append_request.js'
import { DatabaseAway } from '../postgres/database.js'

/** Counts errors, and serves /metrics. */
export function metricsRoutes(app: AppServer, { metrics, worker }: AppParts): void {
  const { registry } = metrics
  app.addHook('onError', async (_request, _reply, error) => metrics.failed(nameOf(error)))
  worker?.shareMetrics(registry)
  const render = oncePerTurn(() => (worker ? worker.metricsOfAll() : registry.metrics()))
  app.get('/metrics', async (_request, reply) => {
    const text = await render()
    reply.header('content-type', registry.contentType)
    return text === undefined
      ? reply.code(503).send('# A worker did not answer. Ask again.\n')
      : reply.send(text)
  })
}

/**
 * Shares one result among all who ask within a turn of the event loop. The text takes milliseconds to render, and
 * requests for it are always admitted (http/admission/admit_requests.ts).
 */
function oncePerTurn<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let made: Promise<Result> | undefined
  return () => {
    if (!made) {
      made = make()
      setImmediate(() => {
        made = undefined
      })
    }
    return made
  }
}

function nameOf(error: Error & { statusCode?: number }): string {
  if (error instanceof AppendInDoubt || (error instanceof DatabaseAway && error.in_doubt)) return 'in_doubt'
  if (error instanceof AnnalsError) return error.error
  // Refusals of the framework have a status; an error without one is a fault.
  return error.statusCode !== undefined && error.statusCode < 500
    ? `http_${error.statusCode}`
    : 'internal_error'
}
