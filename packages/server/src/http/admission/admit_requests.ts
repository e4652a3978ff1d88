import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { admitConsoleRequest } from '../../console_api/console_requests.js'
import { AnnalsError } from '../../errors.js'
import { bearerToken } from '../../projects/authenticate.js'
import type { TokenDirectory } from '../../projects/tokens/token_directory.js'
import type { AppParts } from '../../service/service_context.js'
import { errorText } from '../answer/answer.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'
import type { AppServer } from '../app_server.js'
import { requestIdOf } from '../request/log_requests.js'
import type { AddressOf } from './caller_address.js'
import { closeConnection } from './close_connection.js'
import { Intake } from './intake.js'
import { holdSentAhead } from './request_memory.js'

/** Monitoring must work even when the service has too much to do. */
export const TAKEN_AT_ONCE = new Set(['/health', '/ready', '/metrics'])
/** Most monitoring requests per turn of the event loop: no monitor needs more, and anybody may ask. */
const TAKEN_AT_ONCE_MAX = 8
/** Number of waiting appends, over all projects, from which on it pays to ask whose they are. */
const CROWDED = 250
const APPEND = /\/(?:events|messages|entries)$/
/** How often the log reports the number of refusals. */
const TOLD_MS = 1_000

const REFUSAL = errorText(
  new AnnalsError('overloaded', 'The service is overloaded. Nothing was done; retry shortly.'),
)

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The caller, once somebody has asked. */
  caller?: { project_id: string | undefined }
}

/**
 * Stands in front of the framework: admits requests by turns (http/admission/intake.ts), and refuses what exceeds the
 * process's capacity, for a fraction of a request's cost and without a log line each. This includes appends that
 * `projects/rate_limit.ts` would refuse.
 */
export function admitRequests(app: AppServer, parts: AppParts, addressOf: AddressOf): void {
  const { tokens, appender, memory } = parts
  const [framework] = app.server.listeners('request') as RequestListener[]
  /**
   * Answered when the turn ends. A caller answered at once would send its next request into the same turn, which
   * would then hardly end, and everything that waits for its end would wait on.
   */
  let refused: Exchange[] = []
  const tell = refusalTeller(parts)
  let isTurn = false
  let takenAtOnce = 0
  /**
   * A turn of the event loop accepts one connection, so a caller behind thousands that were opened at once waits for as
   * many turns: these are short while connections come.
   */
  let hasConnected = false

  const callerOf = (exchange: Exchange) => projectOf(exchange, tokens)
  const intake = new Intake<Exchange>({
    // A caller who left meanwhile cannot be answered.
    take: ({ request, response }) => request.socket.destroyed || framework!(request, response),
    callerOf,
    addressOf: ({ request }) => addressOf(request),
    now: () => performance.now(),
  })

  const isLate = (exchange: Exchange) => {
    const { method, url } = exchange.request
    if (method !== 'POST' || !APPEND.test(url!)) return false
    const project_id = callerOf(exchange)
    return project_id !== undefined && appender.isBehind(project_id)
  }

  const endTurn = () => {
    takenAtOnce = 0
    isTurn = intake.nextTurn(hasConnected)
    hasConnected = false
    const refusals = refused
    refused = []
    for (const exchange of refusals) refuse(exchange)
    if (refusals.length > 0) tell(refusals.length)
    if (isTurn) setImmediate(endTurn)
  }

  app.server.on('connection', () => {
    hasConnected = true
  })
  app.server.removeAllListeners('request')
  app.server.on('request', (request, response) => {
    // The parser continues with what arrived on a connection that was closed meanwhile.
    if (request.socket.destroyed) return
    if (request.url!.startsWith('/console/')) admitConsoleRequest(request)
    if (!isTurn) setImmediate(endTurn)
    isTurn = true
    if (TAKEN_AT_ONCE.has(request.url!) && takenAtOnce < TAKEN_AT_ONCE_MAX) {
      takenAtOnce += 1
      return framework!(request, response)
    }
    const exchange: Exchange = { request, response }
    // A connection is counted with one request. This tells whether another one is ahead of this.
    if (response.socket === null && !holdSentAhead(memory, request, response, callerOf(exchange)))
      return closeConnection(request.socket)
    const isCrowded = appender.waitingRequests >= CROWDED
    if ((isCrowded && isLate(exchange)) || !intake.offer(exchange)) refused.push(exchange)
  })
}

/** Counts refusals, and logs how many there were since the last line. */
function refusalTeller({ logger, metrics }: AppParts): (count: number) => void {
  let untold = 0
  let told_at = Number.NEGATIVE_INFINITY
  return (count) => {
    metrics.shed(count)
    untold += count
    const now = performance.now()
    if (now - told_at < TOLD_MS) return
    logger.warn({ requests: untold }, 'refused requests: the process is overloaded')
    untold = 0
    told_at = now
  }
}

function refuse({ request, response }: Exchange): void {
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

function projectOf(exchange: Exchange, tokens: TokenDirectory): string | undefined {
  if (!exchange.caller) {
    const { request } = exchange
    const token = bearerToken(request)
    const project_id = token === undefined ? undefined : tokens.projectOf(token, request.socket)
    exchange.caller = { project_id }
  }
  return exchange.caller.project_id
}
