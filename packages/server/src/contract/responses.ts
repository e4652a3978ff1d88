import Type, { type TSchema } from '#typebox'
import { type ErrorName, exampleOf, retryAfterOf, statusOf } from '../errors.js'
import { Success } from './schema.js'

export const ErrorAnswer = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status.' }),
    error: Type.String({ description: 'A stable name to program against.' }),
    msg: Type.String({ description: 'One sentence for people: what was wrong and what to do.' }),
  },
  { $id: 'Error', additionalProperties: false },
)

const STATUS_TEXT: Record<number, string> = {
  400: 'The request is invalid.',
  401: 'The token is missing, unknown, revoked or expired.',
  403: 'The token does not allow this, or a quota of the project is used up.',
  404: 'It does not exist, or it belongs to another project.',
  409: 'It conflicts with the current state.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  416: 'The range is outside of the bytes.',
  417: 'The header Expect asks for something that the service does not do.',
  422: 'The idempotency key was used for another request.',
  429: 'The token made too many requests; nothing was done.',
  431: 'The request line and the headers are too large.',
  500: 'A server error.',
  503: 'The database is unavailable or the service is overloaded; nothing was stored.',
}

const ALWAYS: ErrorName[] = [
  'invalid_request',
  'unauthorized',
  'insufficient_scope',
  'rate_limited',
  'headers_too_large',
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

export interface ResponseParts {
  status?: number
  description: string
  data: TSchema
  /** Further successful statuses of the same shape, and what they mean. */
  also?: Record<number, string>
  body?: boolean
  idempotent?: boolean
  errors?: ErrorName[]
  message?: string
}

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
          names.map((name) => [name, { value: { code: status, error: name, msg: exampleOf(name) } }]),
        ),
      },
    },
  }
}

export function byteResponses(
  documented: Record<string, unknown>,
  bytes: Readonly<Record<number, string>>,
  media_type = 'application/octet-stream',
): Record<string, unknown> {
  const content = { [media_type]: { schema: { type: 'string', format: 'binary' } } }
  const ofBytes = Object.entries(bytes).map(([status, description]) => [
    status,
    { description, headers: RequestIdHeader, content },
  ])
  return { ...documented, ...Object.fromEntries(ofBytes) }
}

export function streamResponse(documented: Record<string, unknown>): Record<string, unknown> {
  const success = documented[200] as { content: Record<string, unknown> }
  const content = {
    ...success.content,
    'text/event-stream': { schema: Type.String({ description: 'Server-sent events.' }) },
  }
  return { ...documented, 200: { ...success, content } }
}
