import type { FastifyReply } from 'fastify'
import { logReadBytes } from '../admission/request_memory.js'
import { answer } from './answer.js'
import { piecesStream } from './answer_pieces.js'

/** An answer up to this length is sent whole, with its length; a longer one is streamed as it is made. */
const WHOLE_LENGTH_MAX = 1024 * 1024

/**
 * Answers with a resource whose JSON text comes in chunks, so that it is never in memory at once. What one of them
 * takes is held from before the first is read until the answer is taken. An error before
 * the first chunks went out is answered as an error; a later one cuts the connection, and the JSON stays
 * unfinished.
 */
export async function answerChunks(
  reply: FastifyReply,
  chunks: AsyncGenerator<string>,
): Promise<FastifyReply> {
  await reply.request.memory.hold(logReadBytes(reply.request))
  return sendChunks(reply, chunks)
}

/** The same for chunks whose memory is held already. */
export async function sendChunks(reply: FastifyReply, chunks: AsyncGenerator<string>): Promise<FastifyReply> {
  let text = ''
  for (;;) {
    const next = await chunks.next()
    if (next.done) return answer(reply, text)
    text += next.value
    if (text.length > WHOLE_LENGTH_MAX) break
  }
  return reply
    .code(200)
    .header('content-type', 'application/json; charset=utf-8')
    .send(piecesStream(reply.request, enveloped(text, chunks)))
}

async function* enveloped(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield `{"code":0,"error":"","msg":"ok","data":${first}`
  yield* rest
  yield '}'
}
