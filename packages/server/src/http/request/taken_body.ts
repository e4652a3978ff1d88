import type { FactsOf } from '@annals/messages'
import { isRefusal } from '@annals/messages/json'
import type { Static, TSchema } from '#typebox'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { readJson } from '../../json/read_json.js'
import type { TakenBytes } from './take_out_bytes.js'

/**
 * The result for a body: what its operation takes from it, or why it is refused and at which stage of the request.
 */
export type BodyOutcome =
  | { stage: 'taken'; text: string; taken: unknown; attachments: TakenBytes[] }
  | { stage: 'reading' | 'validation' | 'taking'; error: AnnalsError }

/** Bytes of a body beside its attachments, and of each of these. */
export interface AttachmentLimits {
  rest_bytes_max: number
  blob_bytes_max: number
}

/** Stands for a body that was read, checked and processed on the work thread. */
export class TakenBody {
  constructor(readonly outcome: Exclude<BodyOutcome, { stage: 'reading' }>) {}
}

/** An error from the work thread, which lost its class on the way. */
export function revived({ error, message }: Pick<AnnalsError, 'error' | 'message'>): AnnalsError {
  return new AnnalsError(error, message)
}

/** A body's text as it was sent, and its value. `bytes`: of the text as PostgreSQL will write it. */
interface BodyJson {
  text: string
  value: unknown
  bytes: number
}

/** Reads a body that must be storable JSON, or returns why it is refused. */
export function readBodyJson(body: Buffer): BodyJson | AnnalsError {
  const json = readJson(body)
  if (!isRefusal(json)) return { text: json.text, value: json.value, bytes: body.length + json.expansion }
  if (json.refused === 'not_json')
    return new AnnalsError('invalid_json', `The body is not JSON: ${json.reason}.`)
  return invalidRequest(`The body cannot be stored: at ${json.pointer || '/'} ${json.reason}.`)
}

export function bodyTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `The body has more than ${bytes_max} bytes, apart from attachments in base64 where messages have them. Send less per request.`,
  )
}

/**
 * What each operation takes from its body, from the checked value and the text. All work that grows with a body is in
 * here, and the result holds texts and numbers, no trees, so it can run on another thread (threads/). `bytes`: of
 * the text as PostgreSQL will write it. `factsOf`: of the attachments that were taken out of it.
 */
export type TakeBody<Body, Taken> = (body: Body, text: string, bytes: number, factsOf?: FactsOf) => Taken

/**
 * What an operation takes from its body: computed here, or the work thread's result for a large one. The body is dropped:
 * each garbage collection copies what waits for its commit, and the tree of a large body would be most of that.
 */
export function takeBody<Body, Taken>(
  request: { body: unknown; bodyText: string; bodyBytes: number },
  take: TakeBody<Body, Taken>,
): Taken {
  const { body } = request
  request.body = undefined
  if (!(body instanceof TakenBody)) return take(body as Body, request.bodyText, request.bodyBytes)
  if (body.outcome.stage === 'taken') return body.outcome.taken as Taken
  throw revived(body.outcome.error)
}

/** How the body of an operation is checked, and what is taken from it. */
export type BodyParts = readonly [schema: TSchema, take: TakeBody<never, unknown>]

/** For a body whose schema limits all of its content. */
export function whole<Schema extends TSchema>(schema: Schema) {
  return [schema, (body: Static<Schema>) => body] as const
}
