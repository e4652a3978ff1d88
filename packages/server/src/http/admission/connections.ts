import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../../configuration/config.js'
import { AnnalsError, type ErrorName, exampleOf } from '../../errors.js'
import { newId } from '../../ids.js'
import { errorText } from '../answer/answer.js'
import { SECURITY_HEADERS } from '../answer/security_headers.js'
import { cutStalledReaders } from './stalled_readers.js'
import { BoundedChunks } from './tiny_chunks.js'

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
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', exampleOf('request_timeout')],
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

/** What the platform does for the answer whose turn it is; an answer that begins later finds itself closed. */
function tellClosed(response: ServerResponse): void {
  Object.assign(response, { destroyed: true, _closed: true })
  response.emit('close')
}
