import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { AnnalsError, invalidRequest } from '../../errors.js'

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
