import { VERSION } from '../version.js'
import { AnswerTooLong, boundedRequest } from './bounded_request.js'
import { lookUpPublic, namesPrivateAddress, PrivateAddress } from './public_address.js'

/** From the look-up of the name to the receiver's status. */
const ANSWER_MS_MAX = 10_000
/** Bytes read of an answer's body, which is then ignored. */
const ANSWER_BYTES_MAX = 16 * 1024

/** The message may be shown to the person who chose the URL. */
export class PostFailed extends Error {
  override readonly name = 'PostFailed'
}

export interface Post {
  url: string
  headers: Record<string, string>
  body: string
  /** Whether it may go to any address. */
  to_private: boolean
  signal: AbortSignal
}

/**
 * Posts JSON to a URL that others chose. Resolves when the receiver has answered 2xx and the connection is gone, so that
 * whoever counts posts counts connections; follows no redirect, and holds on to nothing that the receiver sends.
 * @throws PostFailed
 */
export async function postJson({ url, headers, body, to_private, signal }: Post): Promise<void> {
  const target = new URL(url)
  if (!to_private && namesPrivateAddress(target)) throw failure(new PrivateAddress())
  const deadline = AbortSignal.timeout(ANSWER_MS_MAX)
  const options = {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...headers,
      'content-length': Buffer.byteLength(body),
      'user-agent': `annals/${VERSION}`,
    },
    // A connection of its own, to an address that was checked for it.
    agent: false,
    ...(!to_private && { lookup: lookUpPublic }),
    signal: AbortSignal.any([signal, deadline]),
  }
  const status = await new Promise<number>((resolve, reject) => {
    let status: number | undefined
    let failed: Error | undefined
    const sent = boundedRequest(target, options, ANSWER_BYTES_MAX)
    sent.on('response', (response) => {
      status = response.statusCode!
      response.on('error', () => {}).resume()
    })
    sent.on('error', (error) => {
      failed = deadline.aborted ? deadline.reason : error
    })
    // Comes in any case, also where an answer that switches protocols ends the connection without an error.
    sent.on('close', () =>
      status === undefined ? reject(failure(failed ?? new Error('no answer'))) : resolve(status),
    )
    sent.end(body)
  })
  if (status < 200 || status > 299) throw new PostFailed(`The receiver answered ${status}.`)
}

function failure(cause: Error): PostFailed {
  return new PostFailed(sentence(cause), { cause })
}

function sentence(error: Error): string {
  if (error instanceof PrivateAddress) return 'The host has no public address.'
  if (error.name === 'TimeoutError') return `The receiver did not answer within ${ANSWER_MS_MAX / 1_000} s.`
  if (error instanceof AnswerTooLong) return 'The receiver sent too much before its status.'
  const { code } = error as NodeJS.ErrnoException
  return `The receiver could not be reached${code ? `: ${code}` : ''}.`
}
