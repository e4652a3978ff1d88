import type { FastifyReply } from 'fastify'
import { logReadBytes } from '../admission/request_memory.js'
import { answer } from './answer.js'
import { piecesStream } from './answer_pieces.js'

/** An answer up to this length is sent at once, with its length; a longer one is streamed as it is produced. */
const WHOLE_LENGTH_MAX = 1024 * 1024

/**
 * Answers with a resource whose JSON text comes in chunks, so that it is never in memory as a whole. The memory of
 * one chunk is reserved before the first is read, until the client has read the answer. An error before the first
 * chunks were sent is answered as an error; a later one closes the connection and leaves the JSON unfinished.
 */
export async function answerChunks(
  reply: FastifyReply,
  chunks: AsyncGenerator<string>,
): Promise<FastifyReply> {
  await reply.request.memory.hold(logReadBytes(reply.request))
  return sendChunks(reply, chunks)
}

/** The same for chunks whose memory is already reserved. */
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
