import type { FastifyCorsOptions } from '@fastify/cors'
import type { AppServer } from '../app_server.js'

/** How long a browser may cache the answer to a preflight request. */
const REMEMBERED_S = 600

/** What pages may call: neither the operator's API nor the console's data. */
const API = ['/api/v1/', '/mcp']

/**
 * Lets pages of the named origins call the API from a browser. Never with cookies: a request carries its token in a
 * header, which a page must know to send. Not registered if the configuration names no origin.
 */
export async function allowOrigins(app: AppServer, origins: string | undefined): Promise<void> {
  if (origins === undefined) return
  const options: FastifyCorsOptions = {
    origin: origins === '*' ? '*' : origins.split(','),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders:
      'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Request-Id',
    exposedHeaders:
      'Allow, Idempotent-Replayed, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id',
    maxAge: REMEMBERED_S,
    strictPreflight: false,
    credentials: false,
  }
  const none: FastifyCorsOptions = { origin: false }
  await app.register(import('@fastify/cors'), {
    delegator: (request, done) =>
      done(null, API.some((path) => request.url!.startsWith(path)) ? options : none),
  })
}
