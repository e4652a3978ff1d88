import { createReadStream, type ReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import { packagedFile } from '../../version.js'
import type { AppServer } from '../app_server.js'

/** Written by the build. */
const DESCRIPTION = packagedFile('dist/openapi.json')

// The reference page's script, from its package; it takes no memory until it is requested.
const SCRIPT = fileURLToPath(
  new URL('js/standalone.js', import.meta.resolve('@scalar/fastify-api-reference')),
)

const CONFIGURATION = JSON.stringify({
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
})

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Annals API reference</title>
<link rel="icon" href="data:,">
</head>
<body>
<script id="api-reference" data-url="/openapi.json" data-configuration='${CONFIGURATION}'></script>
<script src="/docs/reference.js"></script>
</body>
</html>
`

/**
 * The policy allows only this service's own files: the page works without a network, cannot be framed, and does not
 * tell other sites where its reader came from.
 */
const POLICY = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // Required by the page's own script.
  "script-src 'self' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
]

// The same for everybody until the next version.
const FOR_ALL = { 'cache-control': 'public, max-age=300' }

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY.join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  ...FOR_ALL,
}

export function docsRoutes(app: AppServer): void {
  const zippedDescription = zippedOnce(DESCRIPTION)
  const zippedScript = zippedOnce(SCRIPT)

  app.get('/openapi.json', async ({ headers }, reply) => {
    reply.headers(FOR_ALL).type('application/json; charset=utf-8')
    return sendZipped(reply, headers, zippedDescription, () => createReadStream(DESCRIPTION))
  })

  app.get('/docs', async (_request, reply) => reply.headers(PAGE_HEADERS).send(PAGE))

  app.get('/docs/reference.js', async ({ headers }, reply) => {
    reply.type('text/javascript; charset=utf-8').header('cache-control', 'public, max-age=86400')
    return sendZipped(reply, headers, zippedScript, () => createReadStream(SCRIPT))
  })
}

/** Compresses, when somebody first asks, what is the same for everybody: all answers share the bytes. */
function zippedOnce(file: string): () => Promise<Buffer> {
  let zipped: Promise<Buffer> | undefined
  return () => {
    zipped ??= readFile(file).then((content) => promisify(gzip)(content))
    return zipped
  }
}

/** Sends it compressed if the client accepts that, as every browser does. */
async function sendZipped(
  reply: FastifyReply,
  { 'accept-encoding': accepted = '' }: IncomingHttpHeaders,
  zipped: () => Promise<Buffer>,
  plain: () => ReadStream,
): Promise<FastifyReply> {
  reply.header('vary', 'accept-encoding')
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(accepted))
    ? reply.header('content-encoding', 'gzip').send(await zipped())
    : reply.send(await plain())
}
