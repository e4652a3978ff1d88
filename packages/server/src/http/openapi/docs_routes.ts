import { createReadStream } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pageHeaders } from '../answer/security_headers.js'
import type { AppServer } from '../app_server.js'

// The reference page's script from its package, served as a file so that it takes no memory until somebody reads it.
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

// Required by the page's own script.
const POLICY = [
  "script-src 'self' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
]

// The same for everybody until the next version.
const FOR_ALL = { 'cache-control': 'public, max-age=300' }

/** The API's description for programs (/openapi.json) and people (/docs). */
export function docsRoutes(app: AppServer): void {
  // Serialized once: it is half a megabyte, and anybody may ask for it.
  let description: Buffer | undefined
  app.get('/openapi.json', async (_request, reply) => {
    description ??= Buffer.from(JSON.stringify(app.swagger()))
    return reply.headers(FOR_ALL).type('application/json; charset=utf-8').send(description)
  })

  app.get('/docs', async (_request, reply) => pageHeaders(reply, POLICY).headers(FOR_ALL).send(PAGE))

  app.get('/docs/reference.js', async (_request, reply) =>
    reply
      .header('content-type', 'text/javascript; charset=utf-8')
      .header('cache-control', 'public, max-age=86400')
      .send(createReadStream(SCRIPT)),
  )
}
