import type { FastifyReply } from 'fastify'

/** On every answer: browsers must not guess another content type. */
export const NO_SNIFFING = { 'x-content-type-options': 'nosniff' } as const

/** On every answer unless it sets its own: nobody stores it, because most are only for the holder of a key. */
export const SECURITY_HEADERS = { ...NO_SNIFFING, 'cache-control': 'no-store' } as const

/**
 * Headers of a page for browsers. The policy allows only this service's own files: the page works without a network,
 * cannot be framed, and does not tell other sites where its reader came from.
 */
export function pageHeaders(reply: FastifyReply, also: string[] = []): FastifyReply {
  return reply.headers({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [...POLICY, ...also].join('; '),
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  })
}

const POLICY = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
]
