import type { IncomingMessage } from 'node:http'
import { AnnalsError } from '../../errors.js'

/**
 * Headers that may be sent only once, each with its own bit: of two values, different parties would use different
 * ones.
 */
const SENT_ONCE = new Map(
  [
    'host',
    'authorization',
    'content-type',
    'content-length',
    'idempotency-key',
    'if-match',
    'last-event-id',
  ].map((name, index) => [name, 1 << index]),
)

/** The error for headers that no operation accepts: HTTP/1.1 needs a Host, and some headers may be sent only once. */
export function refuseHeaders(request: IncomingMessage): AnnalsError | undefined {
  if (request.headers.host === undefined && request.httpVersion === '1.1')
    return new AnnalsError('invalid_request', 'Header host is required in HTTP/1.1.')
  return refuseRepeated(request)
}

/** The error for a header that is sent twice. */
function refuseRepeated({ rawHeaders }: IncomingMessage): AnnalsError | undefined {
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    const bit = SENT_ONCE.get(name) ?? 0
    if (seen & bit) return new AnnalsError('invalid_request', `Header ${name} is sent twice. Send it once.`)
    seen |= bit
  }
  return undefined
}
