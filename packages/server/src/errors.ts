import { MERGED_BYTES_MAX } from './limits.js'

/**
 * The catalogue of errors that callers can get: one row for each name, with its HTTP status and, if waiting helps,
 * the seconds after which a retry makes sense. A domain error is thrown anywhere below HTTP and becomes a response in
 * one place (`http/answer/errors.ts`).
 */
const CATALOGUE = {
  invalid_json: { status: 400 },
  invalid_request: { status: 400 },
  invalid_cursor: { status: 400 },
  unauthorized: { status: 401 },
  insufficient_scope: { status: 403 },
  quota_exceeded: { status: 403 },
  session_not_found: { status: 404 },
  learning_space_not_found: { status: 404 },
  space_session_not_found: { status: 404 },
  statement_not_found: { status: 404 },
  message_not_found: { status: 404 },
  entry_not_found: { status: 404 },
  blob_not_found: { status: 404 },
  user_not_found: { status: 404 },
  project_not_found: { status: 404 },
  token_not_found: { status: 404 },
  webhook_not_found: { status: 404 },
  route_not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  request_timeout: { status: 408 },
  seq_conflict: { status: 409 },
  seq_ahead: { status: 409 },
  blob_missing: { status: 409 },
  session_exists: { status: 409 },
  session_in_space: { status: 409 },
  user_mismatch: { status: 409 },
  statement_revoked: { status: 409 },
  project_exists: { status: 409 },
  search_off: { status: 409 },
  too_many_webhooks: { status: 409 },
  payload_too_large: { status: 413 },
  unsupported_media_type: { status: 415 },
  range_not_satisfiable: { status: 416 },
  idempotency_key_reused: { status: 422 },
  rate_limited: { status: 429, retry_after_s: 1 },
  headers_too_large: { status: 431 },
  internal_error: { status: 500 },
  being_prepared: { status: 503, retry_after_s: 5 },
  unavailable: { status: 503, retry_after_s: 1 },
  overloaded: { status: 503, retry_after_s: 1 },
} as const satisfies Record<string, { status: number; retry_after_s?: number }>

export type ErrorName = keyof typeof CATALOGUE

export const ERROR_NAMES = Object.keys(CATALOGUE) as ErrorName[]

/** The HTTP status of an error. */
export function statusOf(name: ErrorName): number {
  return CATALOGUE[name].status
}

/** Seconds after which the same request may succeed, if the error is temporary. */
export function retryAfterOf(name: ErrorName): number | undefined {
  const row: { status: number; retry_after_s?: number } = CATALOGUE[name]
  return row.retry_after_s
}

/**
 * An error for the caller. `message` is one sentence for people: what was wrong and what to do. `cause` is only for
 * the log and never leaves the process.
 */
export class AnnalsError extends Error {
  override readonly name = 'AnnalsError'
  readonly error: ErrorName

  constructor(error: ErrorName, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.error = error
  }
}

const NOT_FOUND = {
  session: 'There is no such session in this project.',
  learning_space: 'There is no such learning space in this project.',
  space_session: 'The learning space does not learn from this session.',
  statement: 'There is no such statement in this project.',
  message: 'There is no such message in this session.',
  blob: 'There is no such blob in this project.',
  user: 'There is no such user in this project.',
  project: 'There is no such project.',
  token: 'There is no such token in this project.',
  webhook: 'There is no such webhook in this project.',
} as const

/** The answer for a resource that does not exist, and for one that belongs to another project. `place`: who named it. */
export function notFound(resource: keyof typeof NOT_FOUND, place?: string): AnnalsError {
  const msg = NOT_FOUND[resource]
  return new AnnalsError(`${resource}_not_found`, place === undefined ? msg : `${place}: ${msg}`)
}

/** The answer for an idempotency key that was used for a different request. */
export function keyReused(): AnnalsError {
  return new AnnalsError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another request. Use a new key for a new request.',
  )
}

/** The result of a merge would be too large. */
export function mergedTooLarge(field: string): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `/${field} would exceed ${MERGED_BYTES_MAX} bytes after the merge. Delete keys first.`,
  )
}

/**
 * A reason why the process cannot start or a command cannot run. `message` is a sentence that tells the operator what
 * to do; it is printed without a stack.
 */
export class StartError extends Error {
  override readonly name = 'StartError'
}
