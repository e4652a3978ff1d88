import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError, AppendInDoubt, type ErrorName, invalidRequest } from '../../errors.js'
import { DatabaseAway } from '../../postgres/database.js'
import { describeError, isUnstorable } from '../../postgres/database_errors.js'
import type { AppServer } from '../app_server.js'
import { logOf } from '../request/log_of.js'
import { answerError } from './answer.js'

/** Refusals of the framework itself for which we have no sentence below. */
const CLIENT_ERRORS: Record<number, ErrorName> = {
  400: 'invalid_request',
  // A path outside the directory of files, or spelt so that it might be.
  403: 'route_not_found',
  404: 'route_not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  414: 'invalid_request',
  415: 'unsupported_media_type',
}

/** Turns every error into a response, in this one place. Its cause stays in the log. */
export function answerErrors(app: AppServer): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (isInDoubt(error)) return hangUp(request, reply, error)
    const known = toAnnalsError(error)
    // A path that is refused gets the same answer as any unknown path.
    if (known.error === 'route_not_found') return answerNotFound(request, reply)
    if (request.raw.socket.destroyed)
      logOf(request).debug({ err: describeError(error) }, 'the caller has disconnected')
    else if (known.error === 'internal_error')
      logOf(request).error({ err: describeError(error) }, 'request failed')
    else if (known.error === 'unavailable')
      logOf(request).warn({ err: describeError(known.cause ?? known) }, 'database away')
    // The framework would close the connection of a body that found no memory. Who still sends it could not read why and
    // when to retry; so the rest is discarded, for as long as a request may take.
    if (known.error === 'overloaded' && app.server.listening) reply.removeHeader('connection')
    return answerError(reply, known)
  })
  app.setNotFoundHandler((request, reply) => answerNotFound(request, reply))
}

/** @param meant the path that the caller probably meant */
export function answerNotFound(request: FastifyRequest, reply: FastifyReply, meant?: string): FastifyReply {
  const hint = meant === undefined ? 'See /docs for all operations.' : `Did you mean ${meant.slice(0, 200)}?`
  const sentence = `There is no ${request.method} ${pathOf(request)} here. ${hint}`
  return answerError(reply, new AnnalsError('route_not_found', sentence))
}

function isInDoubt(error: Error): boolean {
  return error instanceof AppendInDoubt || (error instanceof DatabaseAway && error.in_doubt)
}

/**
 * Nobody knows whether the write took effect, so no status would be true: the connection is closed without an answer.
 */
function hangUp(request: FastifyRequest, reply: FastifyReply, error: Error): void {
  logOf(request).error(
    { err: describeError(error) },
    'write in doubt: closed the connection without an answer',
  )
  reply.hijack()
  reply.raw.destroy()
}

function toAnnalsError(error: FastifyError | AnnalsError): AnnalsError {
  if (error instanceof AnnalsError) return error
  switch (error.code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new AnnalsError('unsupported_media_type')
    case 'FST_ERR_BAD_URL':
      return invalidRequest('The path is not a valid URL path. Percent-encode it as UTF-8.')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return invalidRequest('The path has a part of more than 1,024 characters. Shorten it.')
  }
  const { statusCode = 500 } = error
  const refusal = CLIENT_ERRORS[statusCode] ?? (statusCode >= 400 && statusCode < 500 && 'invalid_request')
  if (refusal) return new AnnalsError(refusal, `${error.message.replace(/\.$/, '')}.`)
  // Earlier checks are meant to catch all of these and name the place.
  if (isUnstorable(error)) {
    return invalidRequest('The database cannot hold a value in this request.', {
      cause: error,
    })
  }
  return new AnnalsError('internal_error', undefined, { cause: error })
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]!.slice(0, 200)
}
