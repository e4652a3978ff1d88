import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { AnnalsError, invalidRequest } from '../../errors.js'
import type { WorkThread } from '../../threads/work_thread.js'
import { SMALL_BYTES } from '../admission/request_memory.js'
import type { AppServer } from '../app_server.js'
import type { TakenBytes } from './take_out_bytes.js'
import {
  type AttachmentLimits,
  type BodyOutcome,
  bodyTooLarge,
  readBodyJson,
  revived,
  TakenBody,
} from './taken_body.js'

/** Longer bodies are processed on the work thread: the worst of this length takes a few ms on the event loop. */
const INLINE_BYTES_MAX = 32 * 1024
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
  /** For bodies that would hold the event loop too long. */
  thread: Pick<WorkThread, 'run' | 'takes'>
}
type Done = (error: Error | null, value?: unknown) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The fields of its body in which attachments may be, as base64, and text whose tokens are counted. */
    attaches_in?: string
  }
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
export function readBodies(app: AppServer, { config, thread }: BodyReader): void {
  const limits = limitsOf(config)
  const attached_max = Math.ceil(BASE64_FACTOR * Math.min(ATTACHMENT_BYTES_MAX, limits.blob_bytes_max))
  app.decorateRequest('bodyText', '{}')
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
      if (error) done(error)
      else takeIn(request, body!, thread, limits, done)
    })
  })
}

export function readForms(scope: AppServer, { config, thread }: BodyReader, operation: string): void {
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

function limitsOf({ body_bytes_max, blob_bytes_max }: BodyReader['config']): AttachmentLimits {
  return { rest_bytes_max: body_bytes_max, blob_bytes_max }
}

/** Parses and checks a received body; a large one on the work thread. */
function takeIn(
  request: FastifyRequest,
  body: Buffer,
  thread: BodyReader['thread'],
  limits: AttachmentLimits,
  done: Done,
) {
  if (body.length === 0) return done(null, undefined)
  if (body.length > INLINE_COUNTED_BYTES_MAX) {
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
  thread: BodyReader['thread'],
  limits: AttachmentLimits,
): Promise<BodyOutcome> | undefined {
  const { takes_body, attaches_in } = routeOptions.config
  const isCounted = attaches_in !== undefined && mayHold(attaches_in, body)
  const isInline = body.length <= INLINE_BYTES_MAX && !isCounted
  if (isInline || !takes_body) return undefined
  const takeOut = attaches_in === undefined ? undefined : limits
  return thread.run(project_id, 'takeBody', routeOptions.schema!.operationId!, body, takeOut)
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
  const fail = () => end(invalidRequest('The body ended before it was complete.'))

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
