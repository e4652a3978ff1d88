import type { Config } from '@annals/kits/configuration/config.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { TAKEN_AT_ONCE } from '@annals/kits/http/admission/admit_requests.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { bearerToken, type CountRequest } from './authenticate.js'

/**
 * Counts the requests of each token in windows of one second, and refuses those beyond its limit. The limit is the
 * project's own, or the configured one. Every node counts for itself.
 */
export async function countsRequests(
  app: AppServer,
  { config }: { config: Pick<Config, 'rate_limit_per_second'> },
): Promise<CountRequest> {
  await app.register(rateLimit, {
    global: false,
    enableDraftSpec: true,
    timeWindow: WINDOW_MS,
    store: Store,
    keyGenerator: (request) => request.grant!.key_id,
    max: (request) => request.grant!.rate_limit_per_second ?? config.rate_limit_per_second,
    errorResponseBuilder: (_request, { max }) =>
      new AnnalsError(
        'rate_limited',
        `This API key may make ${max} requests per second. Nothing was done; retry after the time in Retry-After.`,
      ),
  })
  const count = app.rateLimit()
  const shares = new Windows()
  return async (request, reply) => {
    const { narrow, rate_limit_per_second = config.rate_limit_per_second } = request.grant!
    if (narrow !== undefined) {
      const max = Math.ceil(rate_limit_per_second * NARROW_SHARE)
      if (shares.count(narrow.id).current > max)
        throw limited(`This token may make ${max} requests per second.`)
    }
    return count.call(app, request, reply)
  }
}

/** The part of a key's requests that one of the tokens made with it may take. */
const NARROW_SHARE = 0.25

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

/** The project of a token that was seen before. */
export type ProjectOf = (token: string, connection: object) => string | undefined

/**
 * Limits each address per second, if the settings say so: requests of any kind, and requests that are refused for
 * their key. For an address that guesses keys, no unknown key is looked up any more; known keys go on working.
 */
export function limitAddresses(
  app: AppServer,
  { config, projectOf }: { config: Config; projectOf: ProjectOf },
): void {
  const { address_rate_limit_per_second: requests_max, address_refusals_per_second: refusals_max } = config
  const requests = new Windows()
  const refusals = new Windows()

  const isKnown = (request: FastifyRequest) => {
    const token = bearerToken(request)
    return token !== undefined && projectOf(token, request.raw.socket) !== undefined
  }
  const excessOf = (request: FastifyRequest): AnnalsError | undefined => {
    if (requests_max > 0 && requests.count(request.address).current > requests_max)
      return limited(`This address may make ${requests_max} requests per second.`)
    if (refusals_max > 0 && refusals.counted(request.address) >= refusals_max && !isKnown(request))
      return limited('This address has sent too many invalid API keys.')
    return undefined
  }

  if (requests_max > 0 || refusals_max > 0)
    app.addHook('onRequest', (request, _reply, done) =>
      done(TAKEN_AT_ONCE.has(request.url) ? undefined : excessOf(request)),
    )
  if (refusals_max > 0)
    app.addHook('onResponse', (request, reply, done) => {
      if (reply.statusCode === 401) refusals.count(request.address)
      done()
    })
}

function limited(sentence: string): AnnalsError {
  return new AnnalsError('rate_limited', `${sentence} Nothing was done; wait as long as Retry-After says.`)
}

const WINDOW_MS = 1_000
/** As many tokens as the directory caches; the least recently used is dropped first. */
const NAMES_COUNTED_MAX = 10_000

/** Counts each name, such as a token or an address, in windows of one second. */
class Windows {
  private readonly windows = new LRUCache<string, { since_ms: number; current: number }>({
    max: NAMES_COUNTED_MAX,
  })

  /** Counts a name; returns its count in the current window, and when that ends, in ms. */
  count(name: string): { current: number; ttl: number } {
    const now_ms = performance.now()
    let window = this.windows.get(name)
    if (!window || now_ms - window.since_ms >= WINDOW_MS) {
      window = { since_ms: now_ms, current: 0 }
      this.windows.set(name, window)
    }
    window.current += 1
    return { current: window.current, ttl: Math.ceil(WINDOW_MS - (now_ms - window.since_ms)) }
  }

  counted(name: string): number {
    const window = this.windows.peek(name)
    return window && performance.now() - window.since_ms < WINDOW_MS ? window.current : 0
  }
}
