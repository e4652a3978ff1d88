import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { AnnalsError, errorText } from '../../errors.js'
import type { MemoryBudget } from '../../fairness/fair_queue.js'
import { FairQueue, Quota } from '../../fairness/fair_queue.js'
import { holdSentAhead } from '../answer/answer.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'
import type { AppServer } from '../app_server.js'
import { requestIdOf } from '../request/log_requests.js'
import type { AddressOf } from './caller_address.js'
import { closeConnection } from './connections.js'

/**
 * Requests accepted per turn of the event loop. Everything else that arrived, such as the ends of flushes, waits for
 * the turn to end: with 16, appends had a twentieth more throughput than with all, and with 4 less. After a long turn
 * it is more, because refusing thousands takes long and would leave hardly any to be accepted.
 */
export const TAKEN_A_TURN = 16
/** So few in a turn that must be short, as long as none of them is late. */
const TAKEN_A_SHORT_TURN = 4
/** A request that waited longer than this, in ms, is late. */
export const LATE_MS = 100
/** So many may wait in any case: the requests of a few callers are no overload, however slow. */
export const HELD_MIN = 250
/** A short burst is served: nobody is refused before requests have been late for so many ms without a break. */
export const PATIENCE_MS = 250

interface Held<T> {
  item: T
  since: number
}

/** Stands for the next of the callers without a known key. */
const STRANGER = Symbol('stranger')

/**
 * Decides when requests are accepted. Callers take turns, so that one who sends very much delays the others by one
 * turn and no more. When requests have been late for a while, there is more work than can be done, and requests of
 * the caller with most of them waiting are refused.
 */
export class Intake<T> {
  private readonly held = new FairQueue<Held<T> | typeof STRANGER>()
  /** Callers without a known key share the turns of one caller, by address. */
  private readonly strangers = new FairQueue<Held<T>>()
  private readonly quota = new Quota(TAKEN_A_TURN)
  private taken = 0
  /** Time since which requests have been late. */
  private late_since: number | undefined

  constructor(
    private readonly options: {
      take: (item: T) => void
      callerOf: (item: T) => string | undefined
      addressOf: (item: T) => string
      now: () => number
    },
  ) {}

  offer(item: T): boolean {
    const { take, callerOf, addressOf, now } = this.options
    if (this.held.size === 0 && this.taken < TAKEN_A_TURN) {
      this.taken += 1
      take(item)
      return true
    }
    const caller = callerOf(item)
    const since = now()
    const address = caller === undefined ? addressOf(item) : undefined
    const isQuiet = () =>
      this.held.isQuiet(caller) || (address !== undefined && this.strangers.isQuiet(address))
    if (this.isOverloaded(since) && !isQuiet()) return false
    if (address !== undefined) this.strangers.add(address, { item, since })
    this.held.add(caller, address === undefined ? { item, since } : STRANGER)
    return true
  }

  /**
   * Ends a turn and accepts what the next one may of what waits. Returns whether more waits, so that there must be
   * another. `isShort`: what is outside waits for the turns to end, so they do not make up for long ones.
   */
  nextTurn(isShort = false): boolean {
    this.taken = 0
    if (this.held.size === 0) {
      this.late_since = undefined
      return false
    }
    const now = this.options.now()
    let isLate = false
    const allowed = this.quota.turn(now)
    const short = this.late_since === undefined ? TAKEN_A_SHORT_TURN : TAKEN_A_TURN
    for (const most = isShort ? short : allowed; this.taken < most; this.taken += 1) {
      const next = this.held.next()
      const held = next === STRANGER ? this.strangers.next() : next
      if (!held) break
      if (now - held.since > LATE_MS) isLate = true
      this.options.take(held.item)
    }
    this.late_since = isLate ? (this.late_since ?? now) : undefined
    if (this.held.size > 0) return true
    this.quota.rest()
    this.taken = 0
    return false
  }

  private isOverloaded(now: number): boolean {
    const { late_since } = this
    return late_since !== undefined && now - late_since > PATIENCE_MS && this.held.size >= HELD_MIN
  }
}

/** Monitoring must work even when the service has too much to do. */
export const TAKEN_AT_ONCE = new Set(['/health', '/ready', '/metrics'])
/** Most monitoring requests per turn of the event loop: no monitor needs more, and anybody may ask. */
const TAKEN_AT_ONCE_MAX = 8
const TOLD_MS = 1_000

const REFUSAL = errorText(
  new AnnalsError('overloaded', 'The service is overloaded. Nothing was done; retry shortly.'),
)

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  caller?: { name: string | undefined }
}

export interface Admission {
  logger: Logger
  memory: MemoryBudget
  /** Whom a request is from, as far as that is known without asking the database. */
  callerOf(request: IncomingMessage): string | undefined
  /** Whether the service is too late with work of this kind: then the request need not be read. */
  isLate(request: IncomingMessage, callerOf: () => string | undefined): boolean
  enter(request: IncomingMessage): void
  addressOf: AddressOf
  refused(count: number): void
}

/**
 * Stands in front of the framework: admits requests by turns (http/admission/admit_requests.ts), and refuses what exceeds the
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
    // The parser continues with bytes of a connection that was closed meanwhile.
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
