import Type, { type TSchema } from '#typebox'
import { type ErrorName, retryAfterOf, statusOf } from '../errors.js'
import { Success } from './schema.js'

export const ErrorAnswer = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status.' }),
    error: Type.String({ description: 'A stable name to program against.' }),
    msg: Type.String({ description: 'One sentence for people: what was wrong and what to do.' }),
  },
  { $id: 'Error', additionalProperties: false },
)

/** One example sentence for each name, for the documentation. */
const EXAMPLES: Record<ErrorName, string> = {
  invalid_json: 'The body is not JSON: Unexpected end of JSON input.',
  invalid_request: 'Query parameter limit must be an integer from 1 to 200.',
  invalid_cursor:
    'Query parameter cursor is damaged or belongs to a query with another order or filter. Start again without a cursor.',
  unauthorized: 'A valid API key is required: send it as "Authorization: Bearer <API_KEY>".',
  insufficient_scope: 'This API key lacks the scope "write". Use a key that has it.',
  quota_exceeded:
    'The quota max_sessions allows this project 1000 sessions. Nothing was stored: delete sessions, or ask the operator for a higher quota.',
  session_not_found: 'There is no such session in this project.',
  learning_space_not_found: 'There is no such learning space in this project.',
  space_session_not_found: 'The learning space does not learn from this session.',
  statement_not_found: 'There is no such statement in this project.',
  message_not_found: 'There is no such message in this session.',
  entry_not_found: '/ids/2 is not the id of an entry in this session.',
  blob_not_found: 'There is no such blob in this project.',
  user_not_found: 'There is no such user in this project.',
  project_not_found: 'There is no such project.',
  token_not_found: 'There is no such token in this project.',
  webhook_not_found: 'There is no such webhook in this project.',
  route_not_found: 'There is no GET /api/v1/nothing. See /docs for all operations.',
  method_not_allowed: 'PUT is not supported here; use GET, HEAD.',
  request_timeout: 'The request took too long to arrive. Send it again, faster.',
  seq_conflict:
    "If-Match expected seq 6, but the session's last seq is 7. Read the new entries and try again.",
  seq_ahead:
    "Seq 12 is beyond the session's last seq 7: the entries read before are gone, for example after a restore. Read the log again from its beginning.",
  blob_missing:
    '/data/report refers to a blob that this project does not have. Send its bytes first: PUT /api/v1/blobs/{sha256}.',
  session_exists:
    'A session with that use_uuid already exists, with another user, configs or disable_task_tracking.',
  session_in_space: 'The learning space already learns from this session.',
  user_mismatch:
    'The learning space belongs to a user, and learns only from sessions of that user; this session is not one of them. Use a space without a user, or one of the user of the session.',
  statement_revoked:
    'The statement was revoked, since what it was learnt from was deleted. It cannot be changed.',
  too_many_webhooks: 'A project may have 10 webhooks. Delete one, or have one take more events.',
  project_exists: 'There is already a project named "checkout".',
  search_off:
    'Search is off for this project. The operator switches it on, which indexes what is there: annals project set <name> --search on, or PATCH /admin/v1/projects/{project_id} with {"search":true}.',
  payload_too_large: 'The body is larger than 1048576 bytes. Send less per request.',
  unsupported_media_type: 'The body must be JSON, with Content-Type: application/json.',
  range_not_satisfiable: 'The blob has 1048576 bytes. Ask for a range that begins within them.',
  idempotency_key_reused:
    'This Idempotency-Key was used for another request. Use a new key for a new request.',
  rate_limited:
    'This API key may make 100 requests per second. Nothing was done; retry after the time in Retry-After.',
  headers_too_large: 'The request line and the headers are larger than 16384 bytes together. Send less.',
  internal_error: 'Something went wrong on the server. Find it in the log by its request id.',
  being_prepared:
    'This order is being prepared for the project: it was not asked for before. 120,000 sessions are done; retry shortly.',
  unavailable: 'The database cannot be reached at the moment. Nothing was stored; retry shortly.',
  overloaded: 'Too many appends are waiting to be stored. Nothing was stored; retry shortly.',
}

const STATUS_TEXT: Record<number, string> = {
  400: 'The request is invalid.',
  401: 'The token is missing, unknown, revoked or expired.',
  403: 'The token does not allow this, or a quota of the project is used up.',
  404: 'It does not exist, or it belongs to another project.',
  409: 'It conflicts with the current state.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  416: 'The range is outside of the bytes.',
  422: 'The idempotency key was used for another request.',
  429: 'The token made too many requests; nothing was done.',
  500: 'A server error.',
  503: 'The database is unavailable or the service is overloaded; nothing was stored.',
}

/** Errors that every operation may return. */
const ALWAYS: ErrorName[] = [
  'invalid_request',
  'unauthorized',
  'insufficient_scope',
  'rate_limited',
  'internal_error',
  'unavailable',
  'overloaded',
]
const WITH_BODY: ErrorName[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type']

const RequestIdHeader = {
  'X-Request-Id': { type: 'string', description: 'Identifies this request in the log.' },
}

const RateLimitHeaders = {
  'RateLimit-Limit': { type: 'integer', description: 'Requests per second that the token may make.' },
  'RateLimit-Remaining': { type: 'integer', description: 'Requests left in this window.' },
  'RateLimit-Reset': { type: 'integer', description: 'Seconds until the next window.' },
}

interface ResponseParts {
  status?: number
  description: string
  data: TSchema
  /** Further successful statuses of the same shape, and what they mean. */
  also?: Record<number, string>
  body?: boolean
  idempotent?: boolean
  errors?: ErrorName[]
  /** The message in the envelope. */
  message?: string
}

/** The responses of one operation for its OpenAPI description: the success and every error it can have. */
export function responses(parts: ResponseParts): Record<string, unknown> {
  const success = (description: string) => ({
    description,
    headers: {
      ...RequestIdHeader,
      ...(parts.idempotent && {
        'Idempotent-Replayed': {
          type: 'string',
          enum: ['true'],
          description: 'true when this answers a retry.',
        },
      }),
    },
    content: { 'application/json': { schema: Success(parts.data, parts.message) } },
  })
  const documented: Record<string, unknown> = { [parts.status ?? 200]: success(parts.description) }
  for (const [status, description] of Object.entries(parts.also ?? {}))
    documented[status] = success(description)
  const errors = [
    ...ALWAYS,
    ...(parts.body ? WITH_BODY : []),
    ...(parts.idempotent ? REUSED : []),
    ...(parts.errors ?? []),
  ]
  return { ...documented, ...describeErrors(errors) }
}

const REUSED: ErrorName[] = ['idempotency_key_reused']

function describeErrors(names: ErrorName[]): Record<string, unknown> {
  const unique = [...new Set(names)]
  const statuses = [...new Set(unique.map(statusOf))]
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      describeStatus(
        status,
        unique.filter((name) => statusOf(name) === status),
      ),
    ]),
  )
}

function describeStatus(status: number, names: ErrorName[]): unknown {
  const waits = names.some((name) => retryAfterOf(name) !== undefined)
  return {
    description: STATUS_TEXT[status] ?? 'An error.',
    headers: {
      ...RequestIdHeader,
      ...(waits && { 'Retry-After': { type: 'integer', description: 'Seconds to wait.' } }),
      ...(status === 429 && RateLimitHeaders),
      ...(status === 401 && { 'WWW-Authenticate': { type: 'string', description: 'Bearer' } }),
    },
    content: {
      'application/json': {
        schema: Type.Ref('Error'),
        examples: Object.fromEntries(
          names.map((name) => [name, { value: { code: status, error: name, msg: EXAMPLES[name] } }]),
        ),
      },
    },
  }
}

/** Adds responses of bytes, by status, to those of errors and of the envelope. */
export function byteResponses(
  documented: Record<string, unknown>,
  bytes: Readonly<Record<number, string>>,
): Record<string, unknown> {
  const content = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
  const ofBytes = Object.entries(bytes).map(([status, description]) => [
    status,
    { description, headers: RequestIdHeader, content },
  ])
  return { ...documented, ...Object.fromEntries(ofBytes) }
}

/** Adds the response as a stream of server-sent events. */
export function streamResponse(documented: Record<string, unknown>): Record<string, unknown> {
  const success = documented[200] as { content: Record<string, unknown> }
  const content = {
    ...success.content,
    'text/event-stream': { schema: Type.String({ description: 'Server-sent events.' }) },
  }
  return { ...documented, 200: { ...success, content } }
}
