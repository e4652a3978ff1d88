import type { FastifyReply } from 'fastify'
import { outOfMemory } from '../../fairness/memory_budget.js'
import { holdAnswer, logReadBytes } from '../admission/request_memory.js'
import { PIECE_LENGTH_MAX, piecesStream } from './answer_pieces.js'

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
  // Not one long text: V8 keeps those apart, and lets hundreds of megabytes of them lie before it collects them.
  const texts = ['{"code":0,"error":"","msg":"ok","data":']
  let length = 0
  let isWhole = false
  while (!isWhole && length <= WHOLE_LENGTH_MAX) {
    const next = await chunks.next()
    isWhole = next.done === true
    const text = next.done ? '}' : next.value
    length += text.length
    if (texts.at(-1)!.length + text.length > PIECE_LENGTH_MAX) texts.push(text)
    else texts[texts.length - 1] += text
  }
  if (isWhole && !holdAnswer(request, length)) throw outOfMemory()
  reply.code(200).header('content-type', 'application/json; charset=utf-8')
  if (!isWhole) return reply.send(piecesStream(request, followedBy(texts, chunks)))
  if (texts.length === 1 || request.method === 'HEAD') return reply.send(texts.join(''))
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  return reply.header('content-length', bytes).send(piecesStream(request, texts))
}

async function* followedBy(texts: string[], rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield* texts
  yield* rest
  yield '}'
}
