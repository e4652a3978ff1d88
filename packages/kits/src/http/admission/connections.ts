import { IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../../configuration/config.js'
import { AnnalsError, type ErrorName, errorText } from '../../errors.js'
import { newId } from '../../ids.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'

/** Number of checks before a connection is closed: a process that stood still for a while closes none. */
const CHECKS = 20
/** Bytes that a client must read in that time, or all that waits for it: one byte now and then is not reading. */
const TAKEN_BYTES_MIN = 16_384

interface Progress {
  taken: number
  checks: number
}

/**
 * Closes connections whose clients do not read what they asked for, whatever kind of answer it is: what waits for
 * them is held in memory. Answers are written in small pieces (http/answer/answer.ts), so that progress shows.
 */
export function cutStalledReaders(server: Server, stall_ms_max: number, logger: Logger): void {
  const open = new Set<Socket>()
  const behind = new Map<Socket, Progress>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      behind.delete(socket)
    })
  })
  const check = () => {
    let cut = 0
    for (const socket of open) {
      if (isStalled(socket, behind)) {
        socket.destroy()
        cut += 1
      }
    }
    if (cut > 0) logger.warn({ connections: cut }, 'closed connections whose clients did not read')
  }
  let timer: NodeJS.Timeout | undefined
  server.once('listening', () => {
    timer = setInterval(check, stall_ms_max / CHECKS).unref()
  })
  server.once('close', () => clearInterval(timer))
}

function isStalled(socket: Socket, behind: Map<Socket, Progress>): boolean {
  if (socket.writableLength === 0) {
    behind.delete(socket)
    return false
  }
  const taken = socket.bytesWritten - socket.writableLength
  const progress = behind.get(socket)
  if (!progress || taken - progress.taken >= TAKEN_BYTES_MIN) {
    behind.set(socket, { taken, checks: 0 })
    return false
  }
  progress.checks += 1
  return progress.checks >= CHECKS
}

/** Number of tiny chunks that a body may have: clients that write bit by bit, as data is created, send fewer. */
const CHUNKS_MAX = 1_800
/** A body's chunks are tiny if they are smaller on average. */
const CHUNK_BYTES_MIN = 16
/** Number of tiny chunks of one body in a turn of the event loop that has CHUNKS_MAX of all bodies. */
const CHUNKS_IN_FULL_TURN_MAX = 32

/** The turn of the event loop, and the chunks of tiny ones in it. */
let turn = { chunks: 0 }

/**
 * A request that closes its connection when its body comes in tiny chunks. The platform's parser calls back for each
 * chunk, for all that have arrived in the same turn of the event loop: a megabyte in single bytes would hold it for
 * most of a second. This holds before authentication, and also for a body that nobody reads. There is no response:
 * while one is written, the parser would go on.
 */
export class BoundedChunks extends IncomingMessage {
  private chunks = 0
  private chunk_bytes = 0
  private turn = turn
  private chunks_in_turn = 0

  override push(chunk: Buffer | null): boolean {
    if (chunk === null) return super.push(null)
    this.chunks += 1
    this.chunk_bytes += chunk.length
    const isTiny = this.chunk_bytes < this.chunks * CHUNK_BYTES_MIN
    if (!isTiny || !this.isOneTooMany()) return super.push(chunk)
    closeConnection(this.socket)
    return false
  }

  /** Called by the platform for a body that nobody read: discards it. The platform's own method would not count it. */
  _dump(): void {
    this.removeAllListeners('data')
    this.resume()
  }

  private isOneTooMany(): boolean {
    if (turn.chunks === 0) setImmediate(beginTurn)
    turn.chunks += 1
    if (this.turn !== turn) this.chunks_in_turn = 0
    this.turn = turn
    this.chunks_in_turn += 1
    const isFullTurn = turn.chunks > CHUNKS_MAX && this.chunks_in_turn > CHUNKS_IN_FULL_TURN_MAX
    if (this.chunks <= CHUNKS_MAX && !isFullTurn) return false
    // Otherwise, each came in a network packet of its own.
    return this.headers['transfer-encoding'] !== undefined
  }
}

function beginTurn(): void {
  turn = { chunks: 0 }
}

/** The platform's functions that its parser calls, by their names. */
const CALLBACKS = new Set(['parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete'])

/**
 * Closes a connection on which too much has arrived. The platform parses the rest of the 64 KB that it has read even
 * so, and calls back for each request and chunk in them, which can take 10 ms. So its parser calls nothing any more
 * until the connection is closed; then other connections may get it.
 */
export function closeConnection(socket: Socket & { parser?: Record<string, unknown> | null }): void {
  if (socket.destroyed) return
  socket.destroy()
  const { parser } = socket
  if (!parser) return
  const callbacks = Object.entries(parser).filter(
    ([, value]) => typeof value === 'function' && CALLBACKS.has(value.name),
  )
  for (const [key] of callbacks) parser[key] = undefined
  socket.once('close', () => Object.assign(parser, Object.fromEntries(callbacks)))
}

/** Most bytes of a request line and its headers together. This also limits URLs and the number of parameters. */
const HEADER_BYTES_MAX = 16_384
/**
 * How long an idle connection is kept for another request: longer than the 60 s of common proxies, so that the
 * service never closes one while a request is on its way.
 */
const KEEP_ALIVE_MS = 72_000
/** How often connections are checked for timeouts. */
const CHECK_MS = 1_000
/** How long a refused client has to read why. */
const GOODBYE_MS = 1_000

/**
 * Limits of one connection, as options of the framework. A connection that has sent nothing yet counts as sending its
 * headers, so thousands of silent ones are gone as soon as slow ones. The number of requests of a connection is
 * unlimited: a limit would save nothing, and cut off requests that are sent ahead.
 */
export function connectionLimits({ headers_ms_max, request_ms_max }: Config) {
  return {
    requestTimeout: request_ms_max,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      headersTimeout: Math.min(headers_ms_max, request_ms_max),
      maxHeaderSize: HEADER_BYTES_MAX,
      connectionsCheckingInterval: Math.min(CHECK_MS, headers_ms_max, request_ms_max),
      // Refused by a hook instead, in the envelope: the platform's own answer would be empty.
      requireHostHeader: false,
      IncomingMessage: BoundedChunks,
    },
  }
}

/**
 * Limits the connections of a listening server: closes new ones beyond their number, and those whose clients do not
 * read.
 */
export function boundConnections(
  server: Server,
  { connections_max, stall_ms_max }: Config,
  logger: Logger,
): void {
  server.maxConnections = connections_max
  cutStalledReaders(server, stall_ms_max, logger)
  // Refused by a hook instead, in the envelope: the platform's own answer would be empty.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  )
}

const REFUSALS: Record<string, [ErrorName, string]> = {
  HPE_HEADER_OVERFLOW: [
    'headers_too_large',
    `The request line and the headers are larger than ${HEADER_BYTES_MAX} bytes together. Send less.`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', new AnnalsError('request_timeout').message],
}
const MALFORMED: [ErrorName, string] = [
  'invalid_request',
  'The request line, the headers or the chunks are not HTTP/1.1. Correct the client that sent them.',
]

/** Answers malformed requests in the envelope, and closes the connection. */
export function refuseConnections(logger: Logger): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || hasBegunAnswer(socket))
      return void socket.destroy()
    const [name, sentence] = REFUSALS[error.code ?? ''] ?? MALFORMED
    const refusal = new AnnalsError(name, sentence)
    const request_id = newId()
    socket.end(rawAnswer(refusal, request_id))
    // Closed after a delay: closing at once with unread bytes would discard the answer.
    setTimeout(() => socket.destroy(), GOODBYE_MS).unref()
    logger.info({ request_id, error: name, reason: error.code }, 'refused malformed HTTP')
  }
}

function hasBegunAnswer(socket: Socket): boolean {
  const { _httpMessage } = socket as Socket & { _httpMessage?: ServerResponse | null }
  return _httpMessage?.headersSent === true
}

function rawAnswer(error: AnnalsError, request_id: string): string {
  const { status, text } = errorText(error)
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...SECURITY_HEADERS,
    'x-request-id': request_id,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? 'Error'}`, ...lines, '', text].join('\r\n')
}

const STATUS_TEXTS: Record<number, string> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

/**
 * Ends an answer that is queued behind another one on a connection when that connection goes. The platform tells only the
 * answer whose turn it is; what the others send, such as an open file, would be kept for ever.
 */
export function endWithConnection(socket: Socket, response: ServerResponse): void {
  let queued = queuedOn.get(socket)
  if (!queued) {
    queued = new Set()
    queuedOn.set(socket, queued)
    const all = queued
    socket.once('close', () => {
      for (const response of all) tellClosed(response)
    })
  }
  queued.add(response)
  response.once('close', () => queued.delete(response))
}

const queuedOn = new WeakMap<Socket, Set<ServerResponse>>()

/** Does as the platform for the answer whose turn it is; an answer that begins later finds itself closed. */
function tellClosed(response: ServerResponse): void {
  Object.assign(response, { destroyed: true, _closed: true })
  response.emit('close')
}
