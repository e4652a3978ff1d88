import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Receives a sign-in code from a browser on this machine, so nobody has to paste it. */
export interface Loopback {
  port: number
  /** What the browser says with the code: pages of others, and other users of this machine, do not know it. */
  state: string
  code: Promise<string>
  close(): void
}

const STATE_BYTES = 32
const CODE = /^[\w-]{43}$/
const CONNECTIONS_MAX = 16
const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Annals</title><h1>The terminal has the code</h1>
<p>You can close this page.</p></html>
`
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  connection: 'close',
}

/** Listens on a port of this machine alone until it is closed. */
export async function openLoopback(): Promise<Loopback> {
  const state = randomBytes(STATE_BYTES).toString('base64url')
  let take: (code: string) => void
  const code = new Promise<string>((resolve) => {
    take = resolve
  })
  const server = createServer(({ method, url = '', headers: { host } }, response) => {
    const [path, query] = url.split('?')
    const given = new URLSearchParams(query)
    const code = given.get('code') ?? ''
    // A page whose name was made to lead here says that name.
    const isHere = method === 'GET' && path === '/' && host === `127.0.0.1:${port}`
    if (!isHere || !isSame(given.get('state') ?? '', state) || !CODE.test(code))
      return response.writeHead(404, { connection: 'close' }).end()
    response.writeHead(200, HEADERS).end(PAGE, () => take(code))
  })
  server.maxConnections = CONNECTIONS_MAX
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { port, state, code, close }
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
