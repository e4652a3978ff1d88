import type { IncomingMessage } from 'node:http'
import type { FactsOf } from '@annals/messages'
import { isRefusal, readStorable } from '@annals/messages/json'
import type { FastifyRequest } from 'fastify'
import type { Static, TSchema } from '#typebox'
import { AnnalsError, invalidRequest } from '../../errors.js'
import type { WorkThread } from '../../threads/work_thread.js'
import { SMALL_BYTES } from '../answer/answer.js'
import type { AppServer } from '../app_server.js'
import type { TakenBytes } from './find_base64.js'

/** Longer bodies are processed on the work thread: the worst of this length takes a few ms on the event loop. */
const INLINE_BYTES_MAX = 32 * 1024
/** One that is rewritten, by patterns that a project chose. */
const INLINE_REWRITTEN_BYTES_MAX = 1024
/** The same where texts are counted: in some languages, counting tokens takes a thousand times as long as parsing JSON. */
const INLINE_COUNTED_BYTES_MAX = 8 * 1024
/** Bytes of attachments in one body at most, and their length in base64. */
const ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
const BASE64_FACTOR = 4 / 3

/** Memory for each byte of a body: as it arrived, as text, and on its way to the database. */
const BODY_FACTOR = 3
const NOTHING = Buffer.alloc(0)
const GROWTH = 4

export interface BodyReader {
  config: { body_bytes_max: number; blob_bytes_max: number }
  thread: WorkThread
  /** Rewrites bodies before they are taken; undefined: nothing does. */
  rewrites?: RewritesBodies
}
type Done = (error: Error | null, value?: unknown) => void

declare module 'fastify' {
  interface FastifyInstance {
    rewritesBodies: RewritesBodies | undefined
  }
  interface FastifyContextConfig {
    /** The fields of its body that may have attachments as base64, and text whose tokens are counted. */
    attaches_in?: string
  }
  interface FastifyRequest {
    /** The body as it was sent, checked to be storable JSON; `{}` if there was none. */
    bodyText: string
    /** The body as it was sent, if it was rewritten; null: it was not. */
    sentText: string | null
    /** Bytes of the body as PostgreSQL will write it, without insignificant space. */
    bodyBytes: number
    /** The bytes that were taken out of it, to which it refers. */
    attachments: readonly TakenBytes[] | null
  }
}

/** Reads JSON bodies: the value for checking, the text for storing. Everything else is 415. */
export function readBodies(app: AppServer, { config, thread, rewrites }: BodyReader): void {
  const limits = limitsOf(config)
  const attached_max = Math.ceil(BASE64_FACTOR * Math.min(ATTACHMENT_BYTES_MAX, limits.blob_bytes_max))
  app.decorate('rewritesBodies', rewrites)
  app.decorateRequest('bodyText', '{}')
  app.decorateRequest('sentText', null)
  app.decorateRequest('bodyBytes', 2)
  app.decorateRequest('attachments', null)
  app.addHook('onRoute', (route) => {
    if (route.config?.takes_body && !thread.takes(route.schema?.operationId)) {
      route.config.takes_body = false
      route.bodyLimit = INLINE_BYTES_MAX
    }
    if (route.config?.attaches_in) route.bodyLimit = limits.rest_bytes_max + attached_max
    // An absent body counts as an empty object. This must happen here, because the framework shows a validator null for
    // both.
    if (route.schema?.body)
      route.preValidation = (request, _reply, done) => {
        if (request.body === undefined) request.body = {}
        done()
      }
  })
  app.removeAllContentTypeParsers()
  // No operation of these methods has a body; one that is sent has no meaning (RFC 9110, 9.3.5) and is not read.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  app.addContentTypeParser('application/json', (request, payload, done) => {
    const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
    // The name has a dash (RFC 3629), but is often spelt without it.
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      return done(
        new AnnalsError(
          'unsupported_media_type',
          `The charset ${charset} is not supported. Send JSON as UTF-8.`,
        ),
      )
    }
    receiveBody(request, payload, (error, body) => {
      if (error) return done(error)
      const attaches = request.routeOptions.config.attaches_in === undefined ? undefined : limits
      const prepared = rewrites?.prepare(request, body!, attaches)
      const take = (rewriting?: unknown) => {
        const rewrite = rewriting === undefined ? undefined : { by: rewrites!.rewrite, rewriting }
        takeIn(request, body!, thread, limits, done, rewrite)
      }
      if (prepared) prepared.then(take, done)
      else take()
    })
  })
}

export function readForms(scope: AppServer, { config, thread }: BodyReader, operation: string): void {
  const limits = limitsOf(config)
  scope.addContentTypeParser('multipart/form-data', (request, payload, done) => {
    receiveBody(request, payload, (error, body) => {
      if (error) return done(error)
      const content_type = request.headers['content-type']!
      const take = (rewriting?: unknown) => {
        const { project_id } = request
        const on = thread.for(isCostly(rewriting))
        const order = on.run(project_id, 'takeForm', operation, content_type, body!, limits, rewriting)
        takeOutcome(request, order, done)
      }
      const prepared = scope.rewritesBodies?.prepare(request, body!, limits, content_type)
      if (prepared) prepared.then(take, done)
      else take()
    })
  })
}

function limitsOf({ body_bytes_max, blob_bytes_max }: BodyReader['config']): AttachmentLimits {
  return { rest_bytes_max: body_bytes_max, blob_bytes_max }
}

function takeIn(
  request: FastifyRequest,
  body: Buffer,
  thread: BodyReader['thread'],
  limits: AttachmentLimits,
  done: Done,
  rewrite?: { by: RewriteText; rewriting: unknown },
) {
  if (body.length === 0) return done(null, undefined)
  if (body.length > INLINE_COUNTED_BYTES_MAX) {
    const order = orderFor(request, body, thread, limits, rewrite?.rewriting)
    if (order) return takeOutcome(request, order, done)
  }
  const json = rewrite ? rewrittenHere(request, body, rewrite) : readBodyJson(body)
  if (json instanceof AnnalsError) return done(json)
  request.bodyText = json.text
  request.bodyBytes = json.bytes
  done(null, json.value)
}

function rewrittenHere(
  request: FastifyRequest,
  body: Buffer,
  { by, rewriting }: { by: RewriteText; rewriting: unknown },
) {
  const operation = request.routeOptions.schema?.operationId ?? ''
  const json = readRewritten(body, (json) => by(operation, json, rewriting))
  if (!(json instanceof AnnalsError)) request.sentText = json.sent ?? null
  return json
}

/** Has the work thread take a body that is too long for the event loop. */
function orderFor(
  { routeOptions, project_id = '' }: FastifyRequest,
  body: Buffer,
  thread: BodyReader['thread'],
  limits: AttachmentLimits,
  rewriting: unknown,
): Promise<BodyOutcome> | undefined {
  const { takes_body, attaches_in } = routeOptions.config
  const isCounted = attaches_in !== undefined && mayHold(attaches_in, body)
  const inline_max = rewriting === undefined ? INLINE_BYTES_MAX : INLINE_REWRITTEN_BYTES_MAX
  const isInline = body.length <= inline_max && !isCounted
  if (isInline || !takes_body) return undefined
  const takeOut = attaches_in === undefined ? undefined : limits
  const on = thread.for(isCostly(rewriting))
  return on.run(project_id, 'takeBody', routeOptions.schema!.operationId!, body, takeOut, rewriting)
}

/** Whether the project can make rewriting costly. */
function isCostly(rewriting: unknown): boolean {
  return (rewriting as { costly?: boolean } | undefined)?.costly === true
}

/** Whether there is a key of this name, or a letter that is escaped, as one of that key may be. */
function mayHold(name: string, body: Buffer): boolean {
  return body.includes(`"${name}"`) || body.includes('\\u006') || body.includes('\\u007')
}

function takeOutcome(request: FastifyRequest, order: Promise<BodyOutcome>, done: Done): void {
  order.then((outcome) => {
    if (outcome.stage === 'reading') return done(revived(outcome.error))
    if (outcome.stage === 'taken') {
      request.bodyText = outcome.text
      request.sentText = outcome.sent ?? null
      request.attachments = outcome.attachments
    }
    done(null, new TakenBody(outcome))
  }, done)
}

/**
 * Receives a body. For all but a small one, memory is reserved for what has arrived, not for what was announced, so a
 * caller occupies memory only by sending. While there is none, the connection is not read; a body that gets none is
 * refused and what arrived of it dropped.
 */
function receiveBody(
  request: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer) => void,
) {
  const { bodyLimit: bytes_max } = request.routeOptions
  const announced = request.headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  let body: Buffer = NOTHING
  let received = 0
  let isOver = false
  const end = (error?: Error) => {
    if (isOver) return
    isOver = true
    payload.off('data', take).off('end', end).off('error', fail)
    if (error) {
      body = NOTHING
      request.memoryShare?.keep(0)
      // The rest is discarded, until the platform ends it.
      payload.resume()
      return done(error)
    }
    done(null, received === body.length ? body : body.subarray(0, received))
  }
  const put = (chunk: Buffer, room: number) => {
    if (room > body.length) {
      const grown = Buffer.allocUnsafeSlow(room)
      body.copy(grown, 0, 0, received)
      body = grown
    }
    chunk.copy(body, received)
    received += chunk.length
  }
  const take = (chunk: Buffer) => {
    const total = received + chunk.length
    if (total > bytes_max) return end(bodyTooLarge(bytes_max))
    if (total <= body.length) return put(chunk, 0)
    const isWhole = received === 0 && total === length
    if (isWhole && total <= SMALL_BYTES) {
      // Nearly every body arrives in one piece, which is read before another can arrive.
      body = chunk
      received = total
      return
    }
    const room = Math.min(Math.max(total, GROWTH * body.length), length ?? bytes_max)
    if (room <= SMALL_BYTES || request.memory.tryHold(BODY_FACTOR * room)) return put(chunk, room)
    payload.pause()
    request.memory.hold(BODY_FACTOR * room).then(() => {
      if (isOver) return
      put(chunk, room)
      payload.resume()
    }, end)
  }
  const fail = () => end(invalidRequest('The body ended before it was complete. Send it again.'))

  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    return done(
      new AnnalsError(
        'unsupported_media_type',
        `Content-Encoding ${encoding} is not supported. Send the body uncompressed.`,
      ),
    )
  if (length !== undefined && length > bytes_max) return done(bodyTooLarge(bytes_max))
  payload.on('data', take).on('end', end).on('error', fail)
}

/**
 * The result for a body: what its operation takes from it, or why it is refused and at which stage of the request.
 */
export type BodyOutcome =
  | { stage: 'taken'; text: string; sent: string | undefined; taken: unknown; attachments: TakenBytes[] }
  | { stage: 'reading' | 'validation' | 'taking'; error: AnnalsError }

/** Bytes of a body beside its attachments, and of each of these. */
export interface AttachmentLimits {
  rest_bytes_max: number
  blob_bytes_max: number
}

/** Rewrites a body before it is taken. `Rewriting`: the rules, in a form that another thread takes. */
export interface RewritesBodies<Rewriting = unknown> {
  /**
   * Looks through what was sent. Undefined, or a promise of it: nothing is to be rewritten.
   * @throws AnnalsError it is refused
   */
  prepare(
    request: FastifyRequest,
    body: Buffer,
    limits: AttachmentLimits | undefined,
    content_type?: string,
  ): Promise<Rewriting | undefined> | undefined
  rewrite: RewriteText
}

/** The text in place of a body's; undefined: it stays. */
export type RewriteText = (
  operation: string,
  json: { text: string; value: unknown },
  rewriting: unknown,
) => string | undefined

/** JSON that comes in no body, rewritten as if it did. @throws AnnalsError it is refused */
export async function rewrittenText(request: FastifyRequest, text: string): Promise<string> {
  const { rewritesBodies: rewrites } = request.server as AppServer
  const rewriting = await rewrites?.prepare(request, Buffer.from(text), undefined)
  if (rewriting === undefined) return text
  const operation = request.routeOptions.schema?.operationId ?? ''
  return rewrites!.rewrite(operation, { text, value: JSON.parse(text) }, rewriting) ?? text
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

let kept: { body: Buffer; json: BodyJson } | undefined
/** A tree may take eighty times as much memory as its text. */
const KEPT_MS_MAX = 1_000

/** To be called before work that may need as much memory. */
export function forgetBody(): void {
  kept = undefined
}

/** Reads a body that must be storable JSON, or returns why it is refused. */
export function readBodyJson(body: Buffer): BodyJson | AnnalsError {
  const known = kept
  kept = undefined
  if (known?.body.equals(body)) return known.json
  const json = readStorable(body)
  if (!isRefusal(json)) return { text: json.text, value: json.value, bytes: body.length + json.expansion }
  if (json.refused === 'not_json')
    return new AnnalsError('invalid_json', `The body is not JSON: ${json.reason}.`)
  return invalidRequest(`The body cannot be stored: at ${json.pointer || '/'} ${json.reason}.`)
}

/** The same for one that is looked through before it is taken: it is parsed once, if no other comes between. */
export function readBodyFirst(body: Buffer): BodyJson | AnnalsError {
  const json = readBodyJson(body)
  if (json instanceof AnnalsError) return json
  kept = { body, json }
  setTimeout(forgetBody, KEPT_MS_MAX).unref()
  return json
}

/** The same after it was rewritten. `sent`: the text as it was sent, if it was. */
export function readRewritten(
  body: Buffer,
  rewrite: (json: { text: string; value: unknown }) => string | undefined,
): (BodyJson & { sent: string | undefined }) | AnnalsError {
  const json = readBodyJson(body)
  if (json instanceof AnnalsError) return json
  const text = rewrite(json)
  if (text === undefined) return { ...json, sent: undefined }
  const rewritten = readBodyJson(Buffer.from(text))
  return rewritten instanceof AnnalsError ? rewritten : { ...rewritten, sent: json.text }
}

export function bodyTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `The body has more than ${bytes_max} bytes, not counting attachments in base64. Send less per request.`,
  )
}

/**
 * Takes from a body, the checked value and the text, what its operation needs. All work that grows with a body is in
 * here, and the result holds texts and numbers, no trees, so it can run on another thread (threads/). `bytes`: of
 * the text as PostgreSQL will write it. `factsOf`: of the attachments that were taken out of it.
 */
export type TakeBody<Body, Taken> = (body: Body, text: string, bytes: number, factsOf?: FactsOf) => Taken

/**
 * Takes a request's body: computed here, or the work thread's result for a large one. The body is dropped:
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

export type BodyParts = readonly [schema: TSchema, take: TakeBody<never, unknown>]

/** For a body whose schema limits all of its content. */
export function whole<Schema extends TSchema>(schema: Schema) {
  return [schema, (body: Static<Schema>) => body] as const
}

/** A body of bytes as it arrives, and how long it says it is. */
interface ReceivedBytes {
  source: AsyncIterable<Buffer>
  length: number | undefined
}

/**
 * The body of a route that takes bytes, piece by piece: the connection is not read while nobody takes the next one. What is
 * left when the reader stops is discarded, so that the caller reads the answer.
 */
export function receiveBytes(request: FastifyRequest): ReceivedBytes {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw new AnnalsError(
      'unsupported_media_type',
      `Content-Encoding ${encoding} is not supported. Send the bytes as they are.`,
    )
  const announced = request.headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  return { source: pieces(request.body as IncomingMessage | undefined), length }
}

async function* pieces(body: IncomingMessage | undefined): AsyncGenerator<Buffer> {
  if (!body) return
  try {
    yield* body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  } catch (error) {
    throw invalidRequest('The body ended before it was complete. Send it again.', { cause: error })
  } finally {
    body.resume()
  }
}
