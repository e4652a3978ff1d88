import type { FastifyReply } from 'fastify'

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
}

/** Text as HTML has it, also in attributes. */
export const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)

/** A page without script, which loads nothing, stands in no frame, and is not kept. */
export function sendPage(reply: FastifyReply, title: string, html: string): FastifyReply {
  return reply.headers(HEADERS).send(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<h1>${title}</h1>
${html}
</html>
`)
}
