import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import serveFiles from '@fastify/static'
import type { FastifyReply } from 'fastify'
import Type from '#typebox'
import { isLoopback, signsInByCode } from '../configuration/exposure.js'
import { NoQuery, Strict } from '../contract/schema.js'
import { AnnalsError } from '../errors.js'
import { authenticate } from '../http/admission/authenticate.js'
import { answer } from '../http/answer/answer.js'
import { NO_SNIFFING } from '../http/answer/security_headers.js'
import type { AppServer } from '../http/app_server.js'
import type { AppParts } from '../http/service_context.js'
import { consoleDataRoutes } from './console_data_routes.js'
import { exchangeSignInCode } from './sign_in.js'

// Built by packages/console into this package.
const FILES = fileURLToPath(new URL('../console/', import.meta.url))
const DEMO = fileURLToPath(new URL('../../demo/sessions.json', import.meta.url))

// The page shows content from strangers. None of it may become script, leave by a request, or load anything: no
// inline script or style, no other origin, and no string that becomes markup.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Annals</title>
<p>The console is not built here. Run <code>npm run build</code> in the clone and start Annals again.</p></html>`

/** The console: the page, its files, how a tab signs in, and the data that the API does not have. */
export async function consoleRoutes(app: AppServer, parts: AppParts): Promise<void> {
  const built = existsSync(`${FILES}index.html`)
  const page = built ? readFileSync(`${FILES}index.html`, 'utf8') : NOT_BUILT
  const sendPage = (reply: FastifyReply) =>
    protect(reply)
      .code(built ? 200 : 404)
      .header('content-type', 'text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(page)

  app.get('/console', { schema: { hide: true } }, async (_request, reply) => sendPage(reply))
  // Every view has its own address, and all of them serve the same page.
  app.get('/console/*', { schema: { hide: true } }, async (_request, reply) => sendPage(reply))

  // The demo that the empty console offers; read when somebody loads it.
  app.get('/console/demo.json', { schema: { hide: true } }, async (_request, reply) =>
    reply
      .headers({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' })
      .send(createReadStream(DEMO)),
  )

  if (built) {
    await app.register(serveFiles, {
      root: `${FILES}assets`,
      prefix: '/console/assets/',
      decorateReply: false,
      preCompressed: true,
      // Their names contain a digest of their content.
      immutable: true,
      maxAge: '365d',
      setHeaders: (reply) =>
        void reply.headers({ ...NO_SNIFFING, 'cross-origin-resource-policy': 'same-origin' }),
    })
  }
  if (signsInByCode(parts.config)) signInRoute(app, parts)
  await app.register(
    async (authenticated: AppServer) => {
      authenticate(authenticated, parts)
      consoleDataRoutes(authenticated)
    },
    { prefix: '/console/data' },
  )
}

/** A caller who signs in has no key yet, so little may be sent. */
const SIGN_IN_BYTES_MAX = 1_024

/** Exchanges the code of the link that the start printed for an API key. */
function signInRoute(app: AppServer, { database }: AppParts): void {
  const body = Strict({ code: Type.String({ minLength: 1, maxLength: 128 }) })
  app.post(
    '/console/sign_in',
    { bodyLimit: SIGN_IN_BYTES_MAX, schema: { hide: true, querystring: NoQuery, body } },
    async (request, reply) => {
      // Another host name may point here by a stranger's DNS; it is not ours.
      if (!isLoopback(request.hostname.replace(/^\[|\]$/g, ''))) {
        throw new AnnalsError('unauthorized', 'The link works on 127.0.0.1 and localhost only.')
      }
      const token = await exchangeSignInCode(database.of('sign_in'), request.body.code)
      return answer(reply, JSON.stringify({ token }))
    },
  )
}

function protect(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-security-policy', POLICY)
    .header('x-content-type-options', 'nosniff')
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('permissions-policy', 'camera=(), microphone=(), geolocation=()')
}
