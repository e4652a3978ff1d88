import { RequestIdHeader } from '@annals/kits/contract/responses.js'
import { Success } from '@annals/kits/contract/schema.js'
import { AnnalsError, type ErrorName, retryAfterOf, type SaidName, statusOf } from '@annals/kits/errors.js'
import type { DescribedAnswers } from '@annals/kits/http/operation.js'

export const ErrorAnswer = {
  $id: 'Error',
  type: 'object',
  required: ['code', 'error', 'msg'],
  properties: {
    code: { type: 'integer', description: 'The HTTP status.' },
    error: { type: 'string', description: 'A stable name to program against.' },
    msg: { type: 'string', description: 'One sentence for people: what was wrong and what to do.' },
  },
  additionalProperties: false,
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

const RateLimitHeaders = {
  'RateLimit-Limit': { type: 'integer', description: 'Requests per second that the token may make.' },
  'RateLimit-Remaining': { type: 'integer', description: 'Requests left in this window.' },
  'RateLimit-Reset': { type: 'integer', description: 'Seconds until the next window.' },
}

/** The answers of an operation: by status. */
export function answersOf({ extend, ...parts }: DescribedAnswers): Record<string, unknown> {
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
      ...(parts.tagged && TagHeader),
    },
    content: { 'application/json': { schema: Success(parts.data, parts.message) } },
  })
  const documented: Record<string, unknown> = { [parts.status ?? 200]: success(parts.description) }
  for (const [status, description] of Object.entries(parts.also ?? {}))
    documented[status] = success(description)
  if (parts.tagged)
    documented[304] = {
      type: 'null',
      description: 'The answer that `If-None-Match` names is still current.',
      headers: { ...RequestIdHeader, ...TagHeader },
    }
  const errors = [
    ...ALWAYS,
    ...(parts.body ? WITH_BODY : []),
    ...(parts.idempotent ? REUSED : []),
    ...(parts.errors ?? []),
  ]
  const all = { ...documented, ...describeErrors(errors) }
  return extend ? extend(all) : all
}

const TagHeader = {
  ETag: { type: 'string', description: 'For `If-None-Match`. Not every answer has one.' },
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
        schema: { $ref: 'Error' },
        examples: Object.fromEntries(
          names.map((name) => [name, { value: { code: status, error: name, msg: exampleOf(name) } }]),
        ),
      },
    },
  }
}

function exampleOf(name: ErrorName): string {
  return name in EXAMPLES
    ? EXAMPLES[name as keyof typeof EXAMPLES]
    : new AnnalsError(name as SaidName).message
}

/** What errors say for example whose sentence depends on the request. */
const EXAMPLES: Record<Exclude<ErrorName, SaidName>, string> = {
  invalid_json: 'The body is not JSON: Unexpected end of JSON input.',
  invalid_request: 'Query parameter limit must be an integer from 1 to 200.',
  insufficient_scope:
    'This API key lacks the scope "write". Use a key that has it: `annals token create --name <name> --scopes read,write` creates one.',
  quota_exceeded:
    'The quota max_sessions allows this project 1000 sessions. Nothing was stored: delete sessions, or ask the operator for a higher quota.',
  entry_not_found: '/ids/2 is not the id of an entry in this session.',
  route_not_found: 'There is no GET /api/v1/nothing. See /docs for all operations.',
  method_not_allowed: 'PUT is not supported here; use GET, HEAD.',
  seq_conflict:
    "If-Match expected seq 6, but the session's last seq is 7. Read the new entries and try again.",
  seq_ahead:
    "Seq 12 is beyond the session's last seq 7: entries that you have read are gone, for example after a restore. Read the log again from its beginning.",
  log_diverged:
    'Entry 12 is no longer the one you have read: the log was replaced, for example by a restore. Read it again from its beginning.',
  blob_missing:
    '/data/report refers to a blob that this project does not have. Send its bytes first: PUT /api/v1/blobs/{sha256}.',
  session_exists:
    'A session with that use_uuid already exists, with another user, configs or disable_task_tracking.',
  leased:
    'The session is leased to "worker-3/8121" until 2026-11-26T09:30:30.000000Z. Wait with wait_ms, or try again then.',
  fenced:
    "The session's fence is 1795685400123, not 1795685399000: another runner has taken the lease. Stop working on this session.",
  not_pending:
    'Input 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d is not pending: it was applied. Nothing was stored; read the inbox again.',
  resolved:
    'The request was already resolved: approve, by "ada", at 2026-11-26T09:30:00.000000Z. Nothing was changed.',
  not_chained:
    'Entry 12 has no proof: it was stored before proof was switched on, or was copied. For a copied entry, get the proof from the original session.',
  skill_exists: 'There is another skill "fill-forms" of the same owner. Delete it first.',
  too_many_webhooks: 'A project may have 10 webhooks. Delete one, or add events to an existing one.',
  project_exists: 'There is already a project named "checkout".',
  payload_too_large: 'The body is larger than 1048576 bytes. Send less per request.',
  range_not_satisfiable: 'The blob has 1048576 bytes. Request a range that begins within them.',
  rate_limited:
    'This API key may make 100 requests per second. Nothing was done; retry after the time in Retry-After.',
  headers_too_large: 'The request line and the headers are larger than 16384 bytes together. Send less.',
  being_prepared:
    'Sorting by last activity is being built for this project. 120,000 sessions are done; retry shortly.',
}
