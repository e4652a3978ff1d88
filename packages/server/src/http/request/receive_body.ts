import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { SMALL_BYTES } from '../admission/request_memory.js'
import { bodyTooLarge } from './taken_body.js'

/** A body of bytes as it arrives, and how long it says it is. */
interface ReceivedBytes {
  source: AsyncIterable<Buffer>
  length: number | undefined
}

/**
 * The body of a route that takes bytes, piece by piece: the connection is not read while nobody takes the next one. What is
 * left when the reader stops is discarded, so that the caller reads the answer.
 */
export function receiveBytes(request: FastifyRequest): ReceivedBytes {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new AnnalsError(
      'unsupported_media_type',
      `Content-Encoding ${encoding} is not supported. Send the bytes as they are.`,
    )
  const announced = request.headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  return { source: pieces(request.body as IncomingMessage | undefined), length }
}

async function* pieces(body: IncomingMessage | undefined): AsyncGenerator<Buffer> {
  if (!body) return
  try {
    yield* body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  } catch (error) {
    throw invalidRequest('The body ended before it was complete.', { cause: error })
  } finally {
    body.resume()
  }
}

/** Memory for each byte of a body: as it arrived, as text, and on its way to the database. */
const BODY_FACTOR = 3
const NOTHING = Buffer.alloc(0)
const GROWTH = 4

/**
 * Receives a body. For all but a small one, memory is reserved for what has arrived, not for what was announced, so a
 * caller occupies memory only by sending. While there is none, the connection is not read; a body that gets none is
 * refused and what arrived of it dropped.
 */
export function receiveBody(
  request: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer) => void,
) {
  const { bodyLimit: bytes_max } = request.routeOptions
  const announced = request.headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  let body: Buffer = NOTHING
  let received = 0
  let isOver = false
  const end = (error?: Error) => {
    if (isOver) return
    isOver = true
    payload.off('data', take).off('end', end).off('error', fail)
    if (error) {
      body = NOTHING
      request.memoryShare?.keep(0)
      // The rest is discarded, until the platform ends it.
      payload.resume()
      return done(error)
    }
    done(null, received === body.length ? body : body.subarray(0, received))
  }
  const put = (chunk: Buffer, room: number) => {
    if (room > body.length) {
      const grown = Buffer.allocUnsafeSlow(room)
      body.copy(grown, 0, 0, received)
      body = grown
    }
    chunk.copy(body, received)
    received += chunk.length
  }
  const take = (chunk: Buffer) => {
    const total = received + chunk.length
    if (total > bytes_max) return end(bodyTooLarge(bytes_max))
    if (total <= body.length) return put(chunk, 0)
    const isWhole = received === 0 && total === length
    if (isWhole && total <= SMALL_BYTES) {
      // Nearly every body arrives in one piece, which is read before another can arrive.
      body = chunk
      received = total
      return
    }
    const room = Math.min(Math.max(total, GROWTH * body.length), length ?? bytes_max)
    if (room <= SMALL_BYTES || request.memory.tryHold(BODY_FACTOR * room)) return put(chunk, room)
    payload.pause()
    request.memory.hold(BODY_FACTOR * room).then(() => {
      if (isOver) return
      put(chunk, room)
      payload.resume()
    }, end)
  }
  const fail = () => end(invalidRequest('The body ended before it was complete.'))

  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    return done(
      new AnnalsError(
        'unsupported_media_type',
        `Content-Encoding ${encoding} is not supported. Send the body uncompressed.`,
      ),
    )
  if (length !== undefined && length > bytes_max) return done(bodyTooLarge(bytes_max))
  payload.on('data', take).on('end', end).on('error', fail)
}
