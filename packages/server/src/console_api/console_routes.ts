import { createReadStream, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import serveFiles from '@fastify/static'
import type { FastifyReply } from 'fastify'
import { AnnalsError } from '../errors.js'
import { authenticate } from '../http/admission/authenticate.js'
import { NO_SNIFFING } from '../http/answer/security_headers.js'
import type { AppServer } from '../http/app_server.js'
import type { AppParts } from '../http/service_context.js'
import { packagedFile } from '../version.js'
import { consoleDataRoutes } from './console_data_routes.js'
import { sessionRoutes } from './session_routes.js'

// Built by packages/console into this package.
const FILES = packagedFile('dist/console/')
const DEMO = packagedFile('demo/sessions.json')

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
  // One name, which makes one address: that of the worker that reads PDFs.
  'trusted-types pdf-worker',
].join('; ')

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Annals</title>
<p>The console is not built here. Run <code>npm run build</code> in the clone and start Annals again.</p></html>`

export async function consoleRoutes(app: AppServer, parts: AppParts, files = FILES): Promise<void> {
  const built = existsSync(`${files}index.html`)
  // Read each time: the page names its files, and a build while the service runs makes others.
  const sendPage = async (reply: FastifyReply) => {
    const page = await readFile(`${files}index.html`, 'utf8').catch(() => undefined)
    return protect(reply)
      .code(page === undefined ? 404 : 200)
      .header('content-type', 'text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(page ?? NOT_BUILT)
  }

  // A person who opens the service's address means the console; a program gets the answer of any unknown path.
  app.get('/', { schema: { hide: true } }, async ({ headers }, reply) => {
    if (headers.accept?.includes('text/html')) return reply.redirect('/console')
    throw new AnnalsError('route_not_found', 'There is no GET /. See /docs for all operations.')
  })

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
      root: `${files}assets`,
      prefix: '/console/assets/',
      decorateReply: false,
      preCompressed: true,
      // Their names contain a digest of their content.
      immutable: true,
      maxAge: '365d',
      setHeaders: (reply) =>
        void reply.headers({
          ...NO_SNIFFING,
          'cross-origin-resource-policy': 'same-origin',
          // Of a worker, which has a policy of its own: the one that reads strangers' PDFs loads and sends nothing.
          'content-security-policy': "default-src 'none'",
        }),
    })
  }
  sessionRoutes(app, parts)
  await app.register(
    async (authenticated: AppServer) => {
      authenticate(authenticated, parts)
      consoleDataRoutes(authenticated, parts)
    },
    { prefix: '/console/data' },
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
