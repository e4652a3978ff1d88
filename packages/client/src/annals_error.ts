/** The fields of an AnnalsError. */
export interface ErrorParts {
  status: number
  error: string
  message: string
  requestId?: string | undefined
  retryAfter?: number | undefined
  cause?: unknown
}

/**
 * Every failure of a call. Refusals carry what the service said. If no service answered, `status` is 0 and `error` is
 * one of
 *
 * - `connection_failed`: no connection, or it broke before the answer was complete;
 * - `timeout`: no answer in time;
 * - `invalid_request`: the call cannot be sent.
 *
 * `unexpected_answer` is an answer that is not from Annals, such as a proxy's page or a redirect.
 */
export class AnnalsError extends Error {
  override readonly name = 'AnnalsError'
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number
  /** The stable name to program against, such as `session_not_found`. */
  readonly error: string
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined
  /** Seconds to wait before a retry, as the server asked. */
  readonly retryAfter: number | undefined

  constructor({ status, error, message, requestId, retryAfter, cause }: ErrorParts) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.error = error
    this.requestId = requestId
    this.retryAfter = retryAfter
  }
}

/** The error for an unsuccessful answer. `what` names the call in messages. */
export function refusal(what: string, response: Response, text: string, cause?: unknown): AnnalsError {
  const { status } = response
  const requestId = response.headers.get('x-request-id') ?? undefined
  const retryAfter = readRetryAfter(response.headers.get('retry-after'))
  const envelope = readEnvelope(text)
  if (envelope) return new AnnalsError({ status, ...envelope, requestId, retryAfter })
  // A browser hides the status of a redirect that was not followed.
  const answered = response.type === 'opaqueredirect' ? 'by a redirect' : `${status}`
  const start = text.trim().slice(0, 120)
  const message = `${what} was answered ${answered} by something that is not Annals${start && `: ${start}`}. Check the URL.`
  return new AnnalsError({ status, error: 'unexpected_answer', message, requestId, retryAfter, cause })
}

/** The error for an attempt without an answer. */
export function noAnswer(what: string, cause: unknown): AnnalsError {
  const message = `${what} got no complete answer: ${reasonOf(cause)}. Is Annals running there?`
  return new AnnalsError({ status: 0, error: 'connection_failed', message, cause })
}

/** The error for an attempt, or a whole call, that took too long. */
export function timedOut(what: string, ms: number): AnnalsError {
  return new AnnalsError({
    status: 0,
    error: 'timeout',
    message: `${what} got no answer within ${Math.round(ms)} ms.`,
  })
}

function readEnvelope(text: string): { error: string; message: string } | undefined {
  try {
    const { error, msg } = JSON.parse(text) as { error?: unknown; msg?: unknown }
    return typeof error === 'string' && error && typeof msg === 'string' ? { error, message: msg } : undefined
  } catch {
    return undefined
  }
}

/** Seconds, from either form that HTTP allows: a number or a date. */
function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** Node's fetch hides the reason, such as ECONNREFUSED, in the cause; a browser shows none. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string }
  // The codes of fetch itself mean nothing to people.
  if (cause?.code === 'UND_ERR_SOCKET') return 'the connection broke'
  if (cause?.code?.startsWith('UND_ERR') && cause.message) return cause.message
  if (cause?.code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)'
  return cause?.code || cause?.message || message || String(error)
}
