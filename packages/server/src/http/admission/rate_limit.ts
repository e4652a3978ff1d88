import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import type { AppServer } from '../app_server.js'
import { WINDOW_MS, Windows } from '../request/windows.js'

/**
 * Counts the requests of each token in windows of one second, and refuses those beyond its limit. The limit is the
 * project's own, or `per_second`; 0 means none. Every node counts for itself. Call it after authentication, because
 * it reads the grant.
 */
export async function limitRates(app: AppServer, per_second: number): Promise<void> {
  const limitOf = (request: FastifyRequest) => request.grant?.rate_limit_per_second ?? per_second
  await app.register(rateLimit, {
    global: false,
    enableDraftSpec: true,
    timeWindow: WINDOW_MS,
    store: Store,
    keyGenerator: (request) => request.grant!.key_id,
    max: limitOf,
    errorResponseBuilder: (_request, { max }) =>
      new AnnalsError(
        'rate_limited',
        `This API key may make ${max} requests per second. Nothing was done; retry after the time in Retry-After.`,
      ),
  })
  const count = app.rateLimit()
  app.addHook('onRequest', (request, reply, done) => {
    if (limitOf(request) === 0) return done()
    Promise.resolve(count.call(app, request, reply)).then(() => done(), done)
  })
}

/**
 * The library's own store returns one object per token and keeps counting in it: of requests that arrive together,
 * the first would see the last one's count and be refused.
 */
class Store implements FastifyRateLimitStore {
  private readonly windows = new Windows()

  incr(token: string, give: (error: Error | null, counted?: { current: number; ttl: number }) => void): void {
    give(null, this.windows.count(token))
  }

  child(): Store {
    return new Store()
  }
}
