import type { FastifyBaseLogger, FastifyRequest } from 'fastify'

/** A log whose lines name the request. None is made for each request: it would cost as much as the one line of most. */
export function logOf(request: FastifyRequest): FastifyBaseLogger {
  return request.log.child({ request_id: request.id })
}
