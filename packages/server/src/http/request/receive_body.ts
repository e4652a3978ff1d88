import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { SMALL_BYTES } from '../admission/request_memory.js'

/** What a body takes in memory, in bytes for each of its own: as it arrived, as a text, and on its way to the database. */
const BODY_FACTOR = 3
const NOTHING = Buffer.alloc(0)
/** A body that grows is given so many times the room that it had. */
const GROWTH = 4

/**
 * Receives a body. Beyond a small one, room is held for what has arrived, not for what was announced: so a sender
 * holds memory by sending only. While there is none the connection is not read, and a body that gets none is refused
 * with what arrived of it forgotten.
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
  const end = (error: Error | null) => {
    if (isOver) return
    isOver = true
    payload.off('data', take).off('end', finish).off('error', fail)
    if (error) {
      body = NOTHING
      request.memoryShare?.keep(0)
      // What else comes is thrown away, up to where the platform ends it.
      payload.resume()
      return done(error)
    }
    // Of its own size, since what is handed to another thread is handed over with all of its room.
    done(null, received === body.length ? body : Buffer.from(body.subarray(0, received)))
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
      // Nearly every body: it came in one piece, which is read before another can come.
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
  const finish = () => end(null)
  const fail = () => end(new AnnalsError('invalid_request', 'The body ended before it was complete.'))

  if (length !== undefined && length > bytes_max) return done(bodyTooLarge(bytes_max))
  payload.on('data', take).on('end', finish).on('error', fail)
}

function bodyTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `The body is larger than ${bytes_max} bytes. Send less per request.`,
  )
}
