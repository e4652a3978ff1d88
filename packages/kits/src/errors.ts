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
  skill_not_found: { status: 404 },
  skill_file_not_found: { status: 404 },
  message_not_found: { status: 404 },
  entry_not_found: { status: 404 },
  blob_not_found: { status: 404 },
  user_not_found: { status: 404 },
  project_not_found: { status: 404 },
  token_not_found: { status: 404 },
  webhook_not_found: { status: 404 },
  member_not_found: { status: 404 },
  input_not_found: { status: 404 },
  request_not_found: { status: 404 },
  route_not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  request_timeout: { status: 408 },
  seq_conflict: { status: 409 },
  seq_ahead: { status: 409 },
  log_diverged: { status: 409 },
  blob_missing: { status: 409 },
  session_exists: { status: 409 },
  session_in_space: { status: 409 },
  user_mismatch: { status: 409 },
  statement_revoked: { status: 409 },
  skill_exists: { status: 409 },
  skill_is_learnt: { status: 409 },
  project_exists: { status: 409 },
  member_exists: { status: 409 },
  last_admin: { status: 409 },
  search_off: { status: 409 },
  not_chained: { status: 409 },
  leased: { status: 409 },
  fenced: { status: 409 },
  not_pending: { status: 409 },
  resolved: { status: 409 },
  too_many_webhooks: { status: 409 },
  payload_too_large: { status: 413 },
  unsupported_media_type: { status: 415 },
  range_not_satisfiable: { status: 416 },
  expectation_failed: { status: 417 },
  idempotency_key_reused: { status: 422 },
  rate_limited: { status: 429, retry_after_s: 1 },
  headers_too_large: { status: 431 },
  internal_error: { status: 500 },
  being_prepared: { status: 503, retry_after_s: 5 },
  unavailable: { status: 503, retry_after_s: 1 },
  overloaded: { status: 503, retry_after_s: 1 },
} as const satisfies Record<string, { status: number; retry_after_s?: number }>

export type ErrorName = keyof typeof CATALOGUE

const SENTENCES = {
  invalid_cursor:
    'Query parameter cursor is damaged or belongs to a query with another order or filter. Start again without a cursor.',
  unauthorized: 'A valid API key is required: send it as "Authorization: Bearer <API_KEY>".',
  session_not_found: 'There is no such session in this project.',
  learning_space_not_found: 'There is no such learning space in this project.',
  space_session_not_found:
    'The learning space does not learn from this session. To begin, send POST /learning_spaces/{learning_space_id}/learn.',
  statement_not_found: 'There is no such statement in this project.',
  skill_not_found: 'There is no such skill in this project.',
  skill_file_not_found: 'The skill has no such file. Its file_index lists its files.',
  message_not_found: 'There is no such message in this session.',
  blob_not_found: 'There is no such blob in this project.',
  user_not_found: 'There is no such user in this project.',
  project_not_found: 'There is no such project.',
  token_not_found: 'There is no such token in this project.',
  webhook_not_found: 'There is no such webhook in this project.',
  member_not_found: 'There is no such member in this project.',
  member_exists:
    'This address already belongs to a member of the project. To change the role, change the member.',
  last_admin:
    'This is the last administrator of the project who has signed in. First make another member one.',
  input_not_found: 'There is no such input in the inbox of this session.',
  request_not_found: 'There is no such request in this project.',
  request_timeout: 'The request took too long to arrive. Send it again, faster.',
  expectation_failed: 'Header expect must be 100-continue.',
  session_in_space: 'The learning space already learns from this session.',
  user_mismatch:
    "The learning space belongs to a user, and learns only from that user's sessions; this session is not one of them. Use a space without a user, or a space of the session's user.",
  statement_revoked: 'The statement was revoked, because its sources were deleted. It cannot be changed.',
  skill_is_learnt: 'A learning space learnt this skill. To remove it, retire its statements.',
  search_off:
    'Search is off for this project. The operator can switch it on, and existing entries are then indexed: annals project set <name> --search on, or PATCH /admin/v1/projects/{project_id} with {"search":true}.',
  unsupported_media_type: 'The body must be JSON, with Content-Type: application/json.',
  idempotency_key_reused:
    'This Idempotency-Key was used for another request. Use a new key for a new request.',
  internal_error: 'Something went wrong on the server. Look up the request id in its log.',
  unavailable: 'The database cannot be reached at the moment. Nothing was stored; retry shortly.',
  overloaded: 'Too many appends are waiting to be stored. Nothing was stored; retry shortly.',
} as const satisfies Partial<Record<ErrorName, string>>

export type SaidName = keyof typeof SENTENCES

export const ERROR_NAMES = Object.keys(CATALOGUE) as ErrorName[]

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

  constructor(error: SaidName, message?: string, options?: { cause?: unknown })
  constructor(error: ErrorName, message: string, options?: { cause?: unknown })
  constructor(error: SaidName, message: string = SENTENCES[error], options?: { cause?: unknown }) {
    super(message, options)
    this.error = error
  }
}

export function invalidRequest(sentence: string, options?: { cause?: unknown }): AnnalsError {
  return new AnnalsError('invalid_request', sentence, options)
}

type Missing = SaidName extends infer Name
  ? Name extends `${infer Resource}_not_found`
    ? Resource
    : never
  : never

/** The answer for a resource that does not exist, and for one of another project. `place`: the field that named it. */
export function notFound(resource: Missing, place?: string): AnnalsError {
  const name = `${resource}_not_found` as const
  return new AnnalsError(name, place === undefined ? SENTENCES[name] : `${place}: ${SENTENCES[name]}`)
}

export function mergedTooLarge(field: string): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `/${field} would exceed ${MERGED_BYTES_MAX} bytes after the merge. Delete keys first.`,
  )
}

/** Characters of a message: a sentence has far fewer, unless it quotes what a caller sent. */
const MESSAGE_LENGTH_MAX = 4_000

export function errorText({ error, message }: AnnalsError): { status: number; text: string } {
  const status = statusOf(error)
  const msg = message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message
  return { status, text: JSON.stringify({ code: status, error, msg }) }
}

/**
 * A reason why the process cannot start or a command cannot run. `message` is a sentence that tells the operator what
 * to do; it is printed without a stack.
 */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** A reason that may pass by itself: the database is away, or cannot be written at the moment. */
export class DatabaseNotReady extends StartError {}

/**
 * The connection was lost during a commit, and the database did not come back in time: the request may or may not be
 * stored. No status is true, so the caller's connection is closed without an answer, as if the server had died. A
 * retry with an idempotency key resolves it.
 */
export class AppendInDoubt extends Error {
  override readonly name = 'AppendInDoubt'
}
