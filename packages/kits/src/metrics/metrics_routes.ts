import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import { AnnalsError, AppendInDoubt } from '../errors.js'
import type { AppServer } from '../http/app_server.js'
import { DatabaseAway } from '../postgres/database.js'
import type { Metrics } from './metrics.js'

const PAUSE_TIMES = 10
const PAUSE_MS_MAX = 250

/** The other processes that share this one's port. */
export interface Siblings {
  shareMetrics(registry: Registry): void
  /** Undefined if not all of them answered. */
  metricsOfAll(): Promise<string | undefined>
}

export function metricsRoutes(
  app: AppServer,
  { metrics, worker }: { metrics: Metrics; worker?: Siblings | undefined },
): void {
  const { registry } = metrics
  app.addHook('onError', async (_request, _reply, error) => metrics.failed(nameOf(error)))
  worker?.shareMetrics(registry)
  const render = withPauses(() => (worker ? worker.metricsOfAll() : registry.metrics()))
  app.get('/metrics', async (_request, reply) => {
    const text = await render()
    reply.header('content-type', registry.contentType)
    return text === undefined
      ? reply.code(503).send('# A worker did not answer. Ask again.\n')
      : reply.send(text)
  })
}

/**
 * Shares one result among all who ask while it waits for its turn: after each, so many times as long as it took pass
 * before the next one is begun. The text takes milliseconds to render, and requests for it are always admitted
 * (http/admission/admit_requests.ts).
 */
function withPauses<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let next: Promise<Result> | undefined
  let rested: Promise<unknown> = Promise.resolve()
  const begin = async () => {
    await rested
    next = undefined
    const began = performance.now()
    const made = make()
    rested = made
      .catch(() => {})
      .then(() =>
        sleep(Math.min(PAUSE_TIMES * (performance.now() - began), PAUSE_MS_MAX), undefined, { ref: false }),
      )
    return made
  }
  return () => {
    next ??= begin()
    return next
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
