import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { AnnalsError } from '../errors.js'
import { errorText } from './answer.js'
import type { AppParts, AppServer } from './app_parts.js'
import { bearerToken } from './authenticate.js'
import { requestIdOf } from './request_id.js'
import { SECURITY_HEADERS } from './security_headers.js'
import { Turns } from './turns.js'

/** Who watches the service must see it also when it has too much to do. */
const ALWAYS_TAKEN = new Set(['/health', '/ready', '/metrics'])
/** Appends that wait, over all projects, from which on it is worth asking whose they are. */
const CROWDED = 250
const APPEND = /\/(?:events|messages|entries)$/
/** How often the log says how many were refused. */
const TOLD_MS = 1_000

const REFUSAL = errorText(
  new AnnalsError('overloaded', 'The service has too much to do. Nothing was done; try again shortly.'),
)

/**
 * Refuses what is more than the process can do, and does it for a fraction of what a request costs: ahead of the
 * framework, without a line in the log each. Appends that `shed_appends.ts` would refuse are among it. Call
 * `countCallers` on what is authenticated.
 */
export function shedLoad(app: AppServer, { logger, metrics, tokens, appender }: AppParts) {
  const turns = new Turns()
  /**
   * Answered when the turn ends: who is answered at once sends the next request into the same turn, which then hardly
   * ends, and all that waits for its end, answers to what was stored among it, waits on.
   */
  let refused: Array<() => void> = []
  let untold = 0
  let told_at = Number.NEGATIVE_INFINITY

  const endTurn = () => {
    const now = performance.now()
    turns.end(now)
    const refusals = refused
    refused = []
    for (const answer of refusals) answer()
    metrics.shed(refusals.length)
    untold += refusals.length
    if (untold === 0 || now - told_at < TOLD_MS) return
    logger.warn({ requests: untold }, 'refused requests: the process has too much to do')
    untold = 0
    told_at = now
  }

  const callerOf = (request: IncomingMessage) => {
    const token = bearerToken(request)
    return token === undefined ? undefined : tokens.projectOf(token, request.socket)
  }

  const isLate = (request: IncomingMessage) => {
    if (appender.load().requests < CROWDED || request.method !== 'POST' || !APPEND.test(request.url!))
      return false
    const project_id = callerOf(request)
    return project_id !== undefined && appender.isBehind(project_id)
  }

  const isTaken = (request: IncomingMessage) => {
    const now = performance.now()
    if (turns.begin(now)) setImmediate(endTurn)
    if (turns.isFull(now) && !ALWAYS_TAKEN.has(request.url!) && !turns.isQuiet(callerOf(request)))
      return false
    if (isLate(request)) return false
    turns.take()
    return true
  }

  const [framework] = app.server.listeners('request') as RequestListener[]
  app.server.removeAllListeners('request')
  app.server.on('request', (request, response) => {
    if (isTaken(request)) framework!(request, response)
    else refused.push(() => refuse(request, response))
  })
  return {
    /** Notes whose requests are taken in. */
    countCallers: (authenticated: AppServer) =>
      authenticated.addHook('onRequest', (request, _reply, done) => {
        turns.know(request.project_id)
        done()
      }),
  }
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  response
    .writeHead(REFUSAL.status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(REFUSAL.text),
      ...SECURITY_HEADERS,
      'x-request-id': requestIdOf(request),
      'retry-after': '1',
    })
    .end(REFUSAL.text)
}
