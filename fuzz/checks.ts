import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { document } from './document.ts'
import type { Request } from './requests.ts'
import type { Answer } from './send.ts'

/** What an answer's sentence must name, by the name of its error. */
const PLACES: Record<string, RegExp> = {
  invalid_json: /^The body is not JSON: \S/,
  invalid_request:
    /^(\/|Query parameter \S|Path parameter \S|Header \S|The body (must be|does not match its Content-Type|is not the|cannot be stored: at \/|is shorter|is not gzip|is not (JSON of )?OTLP: \S)|The SHA-256 of the body |The path )/,
  invalid_cursor: /^Query parameter (?:cursor|pin) /,
  unauthorized: /Authorization/,
  insufficient_scope: /scope "\w+"|not personal/,
  session_not_found: / session /,
  log_diverged: /^Entry \d+ is no longer /,
  seq_ahead: /^(Seq|\/up_to_seq) \d+ is beyond /,
  learning_space_not_found: / learning space /,
  message_not_found: / message /,
  entry_not_found: / entry /,
  user_not_found: / user /,
  project_not_found: / project/,
  token_not_found: / token /,
  webhook_not_found: / webhook /,
  member_not_found: / member /,
  member_exists: / member /,
  last_admin: / administrator /,
  too_many_webhooks: / webhooks/,
  statement_not_found: / statement /,
  statement_revoked: / statement /,
  space_session_not_found: / this session/,
  session_in_space: / session/,
  user_mismatch: / user/,
  skill_not_found: / skill /,
  skill_file_not_found: / skill /,
  skill_exists: / skill /,
  skill_is_learnt: / skill/,
  blob_not_found: / blob/,
  blob_missing: /^\/|blob/,
  search_off: /[Ss]earch/,
  not_chained: /^Entry /,
  request_not_found: / request /,
  input_not_found: / input /,
  leased: / lease/,
  fenced: /[ -][Ff]ence/,
  not_pending: /^(\/\S+ |Input )/,
  resolved: / request/,
  quota_exceeded: / has |most/,
  route_not_found: /^There is no [A-Z]+ [/*]/,
  method_not_allowed: /^[A-Z]+ is not supported here; use [A-Z]/,
  seq_conflict: /If-Match/,
  session_exists: /use_uuid/,
  project_exists: /named /,
  payload_too_large: /^(\/\w+ |The body )/,
  unsupported_media_type: /Content-Type|Content-Encoding|charset/,
  idempotency_key_reused: /Idempotency-Key/,
  headers_too_large: /headers/,
}

const ajv = new Ajv2020({ strict: false, allErrors: false })
ajvFormats.default(ajv)
ajv.addSchema(document, 'openapi')
const validators = new Map<string, ValidateFunction>()

/** What is wrong with an answer, as a sentence; undefined if nothing is. */
export function faultOf(request: Request, answer: Answer): string | undefined {
  const { status, headers, text } = answer
  if (status >= 500 && status !== 503) return `${status}: a fault of the service`
  if (!headers['x-request-id']) return 'there is no X-Request-Id'
  if (isFile(request, answer)) return undefined
  if (!/^application\/json\b/.test(headers['content-type'] ?? ''))
    return `the content type is ${headers['content-type']}`
  let value: { error?: string; msg?: string }
  try {
    value = JSON.parse(text)
  } catch {
    return 'the answer is not JSON'
  }
  const misfit = misfitOf(request, status, value)
  if (misfit) return misfit
  if (status < 400) return undefined
  const place = PLACES[value.error!]
  if (status < 500 && !place?.test(value.msg!)) return `${value.error} names no place: ${value.msg}`
  return undefined
}

/** Whether an answer is of a type that its operation describes beside JSON. */
function isFile({ operation }: Request, { status, headers }: Answer): boolean {
  const view = document.paths[operation.path]?.[operation.method.toLowerCase()]
  const described = view?.responses[status] as { content?: Record<string, unknown> } | undefined
  const type = (headers['content-type'] ?? '').split(';', 1)[0]!
  return type !== 'application/json' && described?.content?.[type] !== undefined
}

/** How an answer differs from what the operation's description says. */
function misfitOf({ operation }: Request, status: number, value: { error?: string }): string | undefined {
  // A hostile path may be no path, or another one.
  const elsewhere = value.error === 'route_not_found' || value.error === 'method_not_allowed'
  if (!operation.statuses.includes(String(status)) && !elsewhere && status !== 431)
    return `the status ${status} (${value.error}) is not described`
  const pointer =
    status < 400 ? ['paths', operation.path, operation.method.toLowerCase(), 'responses', String(status)] : []
  const validate = validatorOf(pointer)
  return validate(value) ? undefined : `it does not fit its schema: ${ajv.errorsText(validate.errors)}`
}

function validatorOf(pointer: string[]): ValidateFunction {
  const at =
    pointer.length > 0
      ? [...pointer, 'content', 'application/json', 'schema']
      : ['components', 'schemas', 'Error']
  const escaped = at.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
  const reference = `openapi#/${escaped.join('/')}`
  const known = validators.get(reference) ?? ajv.compile({ $ref: reference })
  validators.set(reference, known)
  return known
}
