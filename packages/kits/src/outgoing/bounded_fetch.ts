import type { IncomingMessage } from 'node:http'
import { AnswerTooLong, boundedRequest } from './bounded_request.js'

/**
 * A fetch for libraries that ask what others serve: no redirect is followed, which would take a secret elsewhere, and no
 * more is read than an answer may have. Nothing is unpacked. Whoever calls it ends the request in time by `signal`.
 */
export function boundedFetch(
  bytes_max: number,
): (
  input: string | URL | Request,
  init?: Omit<RequestInit, 'body'> & { body?: unknown },
) => Promise<Response> {
  return async (input, { method = 'GET', headers, body, signal } = {}) => {
    const sent = boundedRequest(
      new URL(String(input)),
      { method, headers: Object.fromEntries(new Headers(headers)), agent: false, signal: signal! },
      bytes_max,
    ).end(body?.toString())
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve).on('error', reject)
      // Comes in any case, also after an answer that switches protocols.
      sent.once('close', () => reject(new Error('no answer')))
    })
    const { statusCode: status = 0, statusMessage: statusText = '' } = answer
    const type = { 'content-type': answer.headers['content-type'] ?? '' }
    const text = await textOf(answer, bytes_max)
    return new Response(text === '' ? null : text, { status, statusText, headers: type })
  }
}

/**
 * Posts JSON to an API that the operator chose, and returns what it answers. @throws an error called `TimeoutError` where
 * `signal` has timed out
 */
export async function postForText(
  url: string,
  {
    body,
    key,
    bytes_max,
    signal,
  }: { body: string; key: string | undefined; bytes_max: number; signal: AbortSignal },
): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
  try {
    const answer = await boundedFetch(bytes_max)(url, { method: 'POST', headers, body, signal })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

async function textOf(answer: IncomingMessage, bytes_max: number): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > bytes_max) throw new AnswerTooLong('too many bytes')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
