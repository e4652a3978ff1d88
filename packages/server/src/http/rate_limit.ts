import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { AnnalsError } from '../errors.js'
import type { AppServer } from './app_parts.js'

const WINDOW_MS = 1_000
/** As many tokens as the directory remembers; the one that was used longest ago is forgotten first. */
const TOKENS_COUNTED_MAX = 10_000

/**
 * Counts the requests of each token in windows of a second, and refuses those beyond its limit. The limit is the
 * project's own, or `per_second`; 0 is none. Every node counts for itself. Call it behind authentication, whose
 * grant it reads.
 */
export async function limitRates(app: AppServer, per_second: number): Promise<void> {
  const limitOf = (request: FastifyRequest) => request.grant?.rate_limit_per_second ?? per_second
  await app.register(rateLimit, {
    global: false,
    enableDraftSpec: true,
    timeWindow: WINDOW_MS,
    store: Windows,
    keyGenerator: (request) => request.grant!.key_id,
    max: limitOf,
    errorResponseBuilder: (_request, { max }) =>
      new AnnalsError(
        'rate_limited',
        `This API key may make ${max} requests a second. Nothing was done; retry after the time in Retry-After.`,
      ),
  })
  const count = app.rateLimit()
  app.addHook('onRequest', (request, reply, done) => {
    if (limitOf(request) === 0) return done()
    Promise.resolve(count.call(app, request, reply)).then(() => done(), done)
  })
}

/**
 * How many requests each token has made in its window. The library's own store hands out one object a token and goes
 * on counting in it: of requests that arrive together, the first would read the number of the last and be refused.
 */
class Windows implements FastifyRateLimitStore {
  private readonly windows = new LRUCache<string, { since_ms: number; requests: number }>({
    max: TOKENS_COUNTED_MAX,
  })

  incr(token: string, give: (error: Error | null, counted?: { current: number; ttl: number }) => void): void {
    const now_ms = performance.now()
    let window = this.windows.get(token)
    if (!window || now_ms - window.since_ms >= WINDOW_MS) {
      window = { since_ms: now_ms, requests: 0 }
      this.windows.set(token, window)
    }
    window.requests += 1
    give(null, { current: window.requests, ttl: Math.ceil(WINDOW_MS - (now_ms - window.since_ms)) })
  }

  child(): Windows {
    return new Windows()
  }
}
