import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { outOfMemory } from '../../fairness/memory_budget.js'
import { SMALL_BYTES, TEXT_FACTOR } from '../admission/request_memory.js'
import type { AppServer } from '../app_server.js'

/** Characters written at once. A slow client's progress shows in pieces of this size. */
export const PIECE_LENGTH_MAX = 65_536

/**
 * Pieces after which other requests get their turn: while the socket accepts them, nothing else would end this one's.
 */
const PIECES_A_TURN = 4

/**
 * Reserves memory for each complete answer, and sends those longer than a piece in pieces, each when the client has
 * taken the previous one. No stream writes more or less than the length that was announced for it: the client would take
 * the surplus, or the next answer instead of what is missing.
 */
export function sendInPieces(app: AppServer): void {
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    if (payload instanceof Readable && request.method !== 'HEAD' && reply.statusCode !== 304) {
      const length = reply.getHeader('content-length')
      return done(null, length === undefined ? payload : Readable.from(exactly(payload, Number(length))))
    }
    if (typeof payload !== 'string') return done()
    if (!holdAnswer(request, payload.length)) return done(outOfMemory())
    if (payload.length <= PIECE_LENGTH_MAX || request.method === 'HEAD') return done()
    reply.header('content-length', Buffer.byteLength(payload))
    done(null, piecesStream(request, [payload]))
  })
}

/**
 * Reserves memory for a complete answer of so many characters. Returns false if there is none; an answer that is already written is sent
 * anyway.
 */
export function holdAnswer(request: FastifyRequest, length: number): boolean {
  const bytes = length > SMALL_BYTES ? TEXT_FACTOR * length : 0
  if (bytes === 0 && !request.memoryShare) return true
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead && !request.memory.tryHold(bytes)) {
    request.memory.keep(0)
    return false
  }
  request.memory.keep(bytes)
  return true
}

/** A part of an answer. */
export type Answer = string | Buffer

/** Texts or bytes as a stream of pieces, which fails when the caller's key is revoked: a client may read slowly. */
export function piecesStream(
  request: FastifyRequest,
  texts: AsyncIterable<Answer> | Iterable<Answer>,
): Readable {
  return Readable.from(whileAuthorized(request, texts))
}

async function* whileAuthorized(
  request: FastifyRequest,
  texts: AsyncIterable<Answer> | Iterable<Answer>,
): AsyncGenerator<Buffer> {
  let written = 0
  for await (const text of texts) {
    for (const piece of typeof text === 'string' ? answerPieces(text) : bytePieces(text)) {
      if (request.isStillAuthorized && !(await request.isStillAuthorized()))
        throw new Error('the key of the request was revoked')
      yield piece
      written += 1
      if (written % PIECES_A_TURN === 0) await setImmediate()
    }
  }
}

/** The pieces, if they are so many bytes together: an error ends the connection, or is the answer if it has not begun. */
async function* exactly(pieces: AsyncIterable<Buffer | string>, bytes: number): AsyncGenerator<Buffer> {
  let missing = bytes
  for await (const piece of pieces) {
    const written = typeof piece === 'string' ? Buffer.from(piece) : piece
    missing -= written.length
    if (missing < 0) throw new Error('an answer has more bytes than were announced')
    yield written
  }
  if (missing > 0) throw new Error('an answer has fewer bytes than were announced')
}

/** A text as UTF-8, piece by piece; only one of them is in memory in addition to the text. */
export function* answerPieces(text: string): Generator<Buffer> {
  for (let from = 0; from < text.length; ) {
    let to = from + PIECE_LENGTH_MAX
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1
    yield Buffer.from(text.slice(from, to))
    from = to
  }
}

function* bytePieces(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += PIECE_LENGTH_MAX)
    yield bytes.subarray(from, from + PIECE_LENGTH_MAX)
}

/** Whether a code unit is the first of a surrogate pair. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
