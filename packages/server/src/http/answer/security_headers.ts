import type { FastifyReply } from 'fastify'

/** On every answer: what it says it is, and nothing else, is what a browser may take it for. */
export const NO_SNIFFING = { 'x-content-type-options': 'nosniff' } as const

/** On every answer unless it says otherwise: nobody keeps it, as most are for the holder of a key alone. */
export const SECURITY_HEADERS = { ...NO_SNIFFING, 'cache-control': 'no-store' } as const

/**
 * Headers of a page for a browser. The policy holds it to this service's own files: it works with the network
 * unplugged, cannot be framed, and tells no other site where its reader came from.
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
