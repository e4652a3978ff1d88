import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IdempotencyKey } from '../../log/append/append_request.js'

/** The caller's idempotency key, with a digest of everything that identifies the request. */
export function idempotencyOf(request: FastifyRequest): IdempotencyKey | undefined {
  const key = request.headers['idempotency-key'] as string | undefined
  if (key === undefined) return undefined
  const { method, headers, params, routeOptions } = request
  const target = `${method} ${routeOptions.url} ${JSON.stringify(params)} ${headers['if-match'] ?? ''}\n`
  return {
    key,
    request_hash: createHash('sha256').update(target).update(request.bodyText).digest('base64url'),
  }
}

/** The seq in an If-Match header; the contract has checked its form. */
export function ifMatchOf(request: FastifyRequest): number | undefined {
  const header = request.headers['if-match']
  return header === undefined ? undefined : Number(header.slice(1, -1))
}

export function markReplayed(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotent-replayed', 'true')
}
