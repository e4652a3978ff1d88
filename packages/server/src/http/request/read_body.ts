import type { FastifyRequest } from 'fastify'
import type { TakenBytes } from '../../blobs/take_out_bytes.js'
import { AnnalsError } from '../../errors.js'
import type { AppServer } from '../app_server.js'
import type { AppParts } from '../service_context.js'
import type { FormOperation } from '../work_thread/thread_work.js'
import type { WorkThread } from '../work_thread/work_thread.js'
import { BODIES, type BodyOperation } from './bodies.js'
import { receiveBody } from './receive_body.js'
import { type AttachmentLimits, type BodyOutcome, readBodyJson, revived, TakenBody } from './taken_body.js'

/** Longer bodies are processed on the work thread: the worst of this length takes a few ms on the event loop. */
const INLINE_BYTES_MAX = 32 * 1024
/** The same for messages: in some languages, counting tokens takes a thousand times as long as parsing JSON. */
const INLINE_MESSAGE_BYTES_MAX = 8 * 1024
const WITH_MESSAGES = new Set<string | undefined>([
  'addMessage',
  'appendEntries',
  'appendToSessions',
  'retractEntries',
])
/** Bytes of attachments in one body at most, and their length in base64. */
const ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
const BASE64_FACTOR = 4 / 3

type BodyParts = Pick<AppParts, 'config' | 'thread'>
type Done = (error: Error | null, value?: unknown) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it was sent, checked to be storable JSON; `{}` if there was none. */
    bodyText: string
    /** Bytes of the body as PostgreSQL will write it, without insignificant space. */
    bodyBytes: number
    /** The bytes that were taken out of it, to which it refers. */
    attachments: readonly TakenBytes[] | null
  }
}

/** Reads JSON bodies: the value for checking, the text for storing. Everything else is 415. */
export function readBodies(app: AppServer, { config, thread }: BodyParts): void {
  const limits = limitsOf(config)
  const attached_max = Math.ceil(BASE64_FACTOR * Math.min(ATTACHMENT_BYTES_MAX, limits.blob_bytes_max))
  app.decorateRequest('bodyText', '{}')
  app.decorateRequest('bodyBytes', 2)
  app.decorateRequest('attachments', null)
  app.addHook('onRoute', (route) => {
    if (WITH_MESSAGES.has(route.schema?.operationId)) route.bodyLimit = limits.rest_bytes_max + attached_max
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
      if (error) done(error)
      else takeIn(request, body!, thread, limits, done)
    })
  })
}

export function readForms(scope: AppServer, { config, thread }: BodyParts, operation: FormOperation): void {
  const limits = limitsOf(config)
  scope.addContentTypeParser('multipart/form-data', (request, payload, done) => {
    receiveBody(request, payload, (error, body) => {
      if (error) return done(error)
      const order = thread.run(
        request.project_id,
        'takeForm',
        operation,
        request.headers['content-type']!,
        body!,
        limits,
      )
      takeOutcome(request, order, done)
    })
  })
}

function limitsOf({ body_bytes_max, blob_bytes_max }: BodyParts['config']): AttachmentLimits {
  return { rest_bytes_max: body_bytes_max, blob_bytes_max }
}

/** Parses and checks a received body; a large one on the work thread. */
function takeIn(
  request: FastifyRequest,
  body: Buffer,
  thread: WorkThread,
  limits: AttachmentLimits,
  done: Done,
) {
  if (body.length === 0) return done(null, undefined)
  if (body.length > INLINE_MESSAGE_BYTES_MAX) {
    const order = orderFor(request, body, thread, limits)
    if (order) return takeOutcome(request, order, done)
  }
  const json = readBodyJson(body)
  if (json instanceof AnnalsError) return done(json)
  request.bodyText = json.text
  request.bodyBytes = json.bytes
  done(null, json.value)
}

/** Has the work thread take a body that is too long for the event loop. */
function orderFor(
  { routeOptions, project_id = '' }: FastifyRequest,
  body: Buffer,
  thread: WorkThread,
  limits: AttachmentLimits,
): Promise<BodyOutcome> | undefined {
  const { operationId = '' } = routeOptions.schema ?? {}
  const takesMessages = WITH_MESSAGES.has(operationId)
  const isInline = body.length <= INLINE_BYTES_MAX && !(takesMessages && mayHoldMessage(body))
  if (isInline || !Object.hasOwn(BODIES, operationId)) return undefined
  const takeOut = takesMessages ? limits : undefined
  return thread.run(project_id, 'takeBody', operationId as BodyOperation, body, takeOut)
}

/** Whether there is a key `blob`, or a letter that is escaped, as one of that key may be. */
function mayHoldMessage(body: Buffer): boolean {
  return body.includes('"blob"') || body.includes('\\u006')
}

function takeOutcome(request: FastifyRequest, order: Promise<BodyOutcome>, done: Done): void {
  order.then((outcome) => {
    if (outcome.stage === 'reading') return done(revived(outcome.error))
    if (outcome.stage === 'taken') {
      request.bodyText = outcome.text
      request.attachments = outcome.attachments
    }
    done(null, new TakenBody(outcome))
  }, done)
}
