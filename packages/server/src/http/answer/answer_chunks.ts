import type { FastifyReply } from 'fastify'
import { outOfMemory } from '../../fairness/memory_budget.js'
import { logReadBytes } from '../admission/request_memory.js'
import { AnswerBytes } from './answer_bytes.js'
import { type Answer, holdAnswer, PIECE_LENGTH_MAX, piecesStream } from './answer_pieces.js'

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
  const { request } = reply
  let text = '{"code":0,"error":"","msg":"ok","data":'
  let bytes: AnswerBytes | undefined
  let { length } = text
  let isWhole = false
  while (!isWhole && length <= WHOLE_LENGTH_MAX) {
    const next = await chunks.next()
    isWhole = next.done === true
    const more = next.done ? '}' : next.value
    length += more.length
    if (text.length + more.length > PIECE_LENGTH_MAX) {
      bytes ??= new AnswerBytes(reply.raw)
      bytes.add(text)
      text = more
    } else text += more
  }
  if (isWhole && !holdAnswer(request, length)) throw outOfMemory()
  reply.code(200).header('content-type', 'application/json; charset=utf-8')
  if (!isWhole) return reply.send(piecesStream(request, followedBy([...(bytes?.parts ?? []), text], chunks)))
  if (!bytes) return reply.send(text)
  bytes.add(text)
  if (request.method === 'HEAD') return reply.send(bytes.parts.join(''))
  return reply.header('content-length', bytes.length).send(piecesStream(request, bytes.parts))
}

async function* followedBy(parts: Answer[], rest: AsyncGenerator<string>): AsyncGenerator<Answer> {
  yield* parts
  yield* rest
  yield '}'
}
