import type { IncomingMessage } from 'node:http'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { newId } from '../../ids.js'
import type { RequestTrace, Tracing } from '../../tracing/tracing.js'
import type { answersUnrouted } from '../admission/method_not_allowed.js'
import { releaseMemory } from '../answer/answer.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'
import type { AppServer } from '../app_server.js'
import { logOf } from './log_of.js'

/** The log of a request: the same for all, see logOf. */
export function sameLog(log: FastifyBaseLogger): FastifyBaseLogger {
  return log
}

/**
 * The first and last hooks of every request: headers that each answer has, and what counts requests and gives back what
 * they held. One structured line per request, when it is answered: never a token, a query string or a payload.
 */
export function logRequests(
  app: AppServer,
  { answered }: { answered(request: FastifyRequest, route: string, status: number, ms: number): void },
  answerUnrouted: ReturnType<typeof answersUnrouted>,
): void {
  app.decorateRequest('project_id', '')
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).headers(SECURITY_HEADERS)
    const refusal = refuseHead(request.raw)
    // Nobody knows where such a request ends (RFC 9112, 6.1).
    if (refusal && request.raw.httpVersion === '1.0') reply.header('connection', 'close')
    // Before the body, which need not be read.
    if (!refusal && request.is404) answerUnrouted(request, reply)
    else done(refusal)
  })
  // Nobody is left to answer: a caller who gave up, or a client who closed a tail.
  app.addHook('onRequestAbort', async (request) => {
    logOf(request).info(
      {
        project_id: request.project_id || undefined,
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
      },
      'the caller disconnected',
    )
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { id: request_id, method } = request
    const { elapsedTime: ms, statusCode: status } = reply
    const project_id = request.project_id || undefined
    const route = request.routeOptions.url ?? 'unknown'
    answered(request, route, status, ms)
    if (request.memoryShare) releaseMemory(request)
    const duration_ms = Math.round(ms * 1000) / 1000
    request.log.info({ request_id, project_id, method, route, status, duration_ms }, 'request')
    done()
  })
}

/**
 * Headers that may be sent only once, each with its own bit: of two values, different parties would use different
 * ones.
 */
const SENT_ONCE = new Map(
  [
    'host',
    'authorization',
    'content-type',
    'content-length',
    'idempotency-key',
    'if-match',
    'last-event-id',
  ].map((name, index) => [name, 1 << index]),
)

/** Names and values of headers: the platform drops those beyond 1,000, which then could be there twice. */
const RAW_HEADERS_MAX = 2 * 1_000

/** The error for a head that no operation accepts: HTTP/1.1 needs a Host, and some headers may be sent only once. */
function refuseHead({ headers, httpVersion, rawHeaders, url }: IncomingMessage): AnnalsError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return invalidRequest('The request line must end with HTTP/1.1.')
  if (!isDecodable(url!))
    return invalidRequest('The query is not a valid URL query. Percent-encode it as UTF-8.')
  if (headers.host === undefined && httpVersion === '1.1')
    return invalidRequest('Header host is required in HTTP/1.1.')
  if (rawHeaders.length >= RAW_HEADERS_MAX)
    return new AnnalsError('headers_too_large', 'The request has 1,000 headers or more. Send fewer.')
  // A proxy may decode other encodings, and the service does not.
  const encoding = headers['transfer-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return invalidRequest('Header transfer-encoding must be chunked, and nothing else.')
  // HTTP/1.0 has no chunks: a proxy that knows this sees the end of the request elsewhere.
  if (encoding !== undefined && httpVersion === '1.0')
    return invalidRequest('Header transfer-encoding is not part of HTTP/1.0. Use HTTP/1.1.')
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return new AnnalsError('expectation_failed')
  // No name is there twice, as nearly always: the names need not be looked at.
  if (rawHeaders.length === 2 * Object.keys(headers).length) return undefined
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    const bit = SENT_ONCE.get(name) ?? 0
    if (seen & bit) return invalidRequest(`Header ${name} is sent twice. Send it once.`)
    seen |= bit
  }
  return undefined
}

/** Whether the query is UTF-8: its parser leaves what is not as it was sent, which may be the text of something else. */
function isDecodable(url: string): boolean {
  const at = url.indexOf('?')
  if (at === -1 || !url.includes('%', at)) return true
  try {
    decodeURIComponent(url.slice(at))
    return true
  } catch {
    return false
  }
}

const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/

/** The id of a request: the caller's, if it is safe to log; otherwise a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newId()
}

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
