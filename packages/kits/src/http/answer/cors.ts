import type { FastifyCorsOptions } from '@fastify/cors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AppServer } from '../app_server.js'

/** How long a browser may cache the answer to a preflight request. */
const REMEMBERED_S = 600

/** Paths that pages may call: neither the operator's API nor the console's data. */
const API = ['/api/v1/', '/mcp']
/** Where tokens name the origins of the pages that use them. */
const TOKENS = '/api/v1/'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
const ALLOWED_HEADERS =
  'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, X-Request-Id'
const EXPOSED_HEADERS =
  'Allow, ETag, Idempotent-Replayed, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id'

/** Of an answer that a page may read. */
export const SHARED_HEADERS = { 'access-control-expose-headers': EXPOSED_HEADERS }

/**
 * Answers a browser that asks whether a page may send a request: it sends no token with that, so any page may. Which page
 * may read the answer is decided there, by the token. Returns false if it is no such question.
 */
export function answerPreflight({ method, url, headers }: FastifyRequest, reply: FastifyReply): boolean {
  const asks = headers.origin !== undefined && headers['access-control-request-method'] !== undefined
  if (method !== 'OPTIONS' || !asks || !url.startsWith(TOKENS)) return false
  void reply
    .code(204)
    .headers({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': METHODS.join(', '),
      'access-control-allow-headers': ALLOWED_HEADERS,
      'access-control-max-age': String(REMEMBERED_S),
    })
    .send()
  return true
}

/**
 * Lets pages of the named origins call the API from a browser. Never with cookies: a request carries its token in a
 * header, which a page must know to send. Not registered if the configuration names no origin.
 */
export async function allowOrigins(app: AppServer, origins: string | undefined): Promise<void> {
  if (origins === undefined) return
  const options: FastifyCorsOptions = {
    origin: origins === '*' ? '*' : origins.split(','),
    methods: METHODS,
    allowedHeaders: ALLOWED_HEADERS,
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: REMEMBERED_S,
    strictPreflight: false,
    credentials: false,
  }
  const none: FastifyCorsOptions = { origin: false }
  const asked: FastifyCorsOptions = { ...options, origin: true }
  const optionsFor = ({ method, url }: FastifyRequest) => {
    if (method === 'OPTIONS' && url.startsWith(TOKENS)) return asked
    return API.some((path) => url.startsWith(path)) ? options : none
  }
  await app.register(import('@fastify/cors'), {
    delegator: (request: FastifyRequest, done) => done(null, optionsFor(request)),
  })
}
