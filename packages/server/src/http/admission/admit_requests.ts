import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { AnnalsError } from '../../errors.js'
import type { MemoryBudget } from '../../fairness/memory_budget.js'
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
/** How often the log reports the number of refusals. */
const TOLD_MS = 1_000

const REFUSAL = errorText(
  new AnnalsError('overloaded', 'The service is overloaded. Nothing was done; retry shortly.'),
)

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The caller, once somebody has asked. */
  caller?: { name: string | undefined }
}

/** What admission asks of those who know the callers. */
export interface Admission {
  logger: Logger
  memory: MemoryBudget
  /** Whom a request is from, as far as that is known without asking the database. */
  callerOf(request: IncomingMessage): string | undefined
  /** Whether the service is behind with what a request asks for, so that it need not be read. */
  isLate(request: IncomingMessage, callerOf: () => string | undefined): boolean
  /** Rewrites a request as it comes in. */
  enter(request: IncomingMessage): void
  addressOf: AddressOf
  /** Called with a number of refusals. */
  refused(count: number): void
}

/**
 * Stands in front of the framework: admits requests by turns (http/admission/intake.ts), and refuses what exceeds the
 * process's capacity, for a fraction of a request's cost and without a log line each. This includes appends that
 * `projects/rate_limit.ts` would refuse.
 */
export function admitRequests(app: AppServer, admission: Admission): void {
  const { memory, addressOf } = admission
  const [framework] = app.server.listeners('request') as RequestListener[]
  /**
   * Answered when the turn ends. A caller answered at once would send its next request into the same turn, which
   * would then hardly end, and everything that waits for its end would wait on.
   */
  let refused: Exchange[] = []
  const tell = refusalTeller(admission)
  let isTurn = false
  let takenAtOnce = 0
  /**
   * A turn of the event loop accepts one connection, so a caller behind thousands that were opened at once waits for as
   * many turns: these are short while connections come.
   */
  let hasConnected = false

  const callerOf = (exchange: Exchange) => {
    exchange.caller ??= { name: admission.callerOf(exchange.request) }
    return exchange.caller.name
  }
  const intake = new Intake<Exchange>({
    // A caller who left meanwhile cannot be answered.
    take: ({ request, response }) => request.socket.destroyed || framework!(request, response),
    callerOf,
    addressOf: ({ request }) => addressOf(request),
    now: () => performance.now(),
  })

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
    admission.enter(request)
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
    const isLate = admission.isLate(request, () => callerOf(exchange))
    if (isLate || !intake.offer(exchange)) refused.push(exchange)
  })
}

/** Counts refusals, and logs how many there were since the last line. */
function refusalTeller({ logger, refused }: Admission): (count: number) => void {
  let untold = 0
  let told_at = Number.NEGATIVE_INFINITY
  return (count) => {
    refused(count)
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
