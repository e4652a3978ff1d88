import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

const ORIGIN = 'https://app.example.com'
const OTHER = 'https://elsewhere.example.com'

const service = useService()
let open: AnnalsServer

beforeAll(async () => {
  open = await service.startNode({ ANNALS_CORS_ORIGINS: `https://first.example.com,${ORIGIN}` })
})

const preflight = (node: AnnalsServer, origin: string) =>
  service.rawClient(undefined, node).request('OPTIONS', '/api/v1/session', {
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type,idempotency-key',
    },
  })
const corsHeaders = (headers: object) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'))

describe('a web page of another origin', () => {
  it('may ask whether it may send a request, and reads no answer unless it is configured', async () => {
    const api = await service.newClient()
    expect((await preflight(service.node, ORIGIN)).status).toBe(204)
    const { headers } = await api.request('GET', '/api/v1/session', { headers: { Origin: ORIGIN } })
    expect(corsHeaders(headers)).toEqual([])
  })

  it('may call where it is, without cookies, and reads the headers that matter', async () => {
    const asked = await preflight(open, ORIGIN)
    expect(asked.status).toBe(204)
    expect(asked.headers['access-control-allow-origin']).toBe(ORIGIN)
    expect(asked.headers['access-control-allow-methods']).toMatch(/GET.*POST.*DELETE/)
    expect(asked.headers['access-control-allow-headers']).toMatch(/Authorization.*Idempotency-Key/)
    expect(asked.headers['access-control-allow-credentials']).toBeUndefined()
    const { token } = await service.newProject()
    const api = await service.newClient({ token, node: open })
    const answer = await api.request('GET', '/api/v1/session', { headers: { Origin: ORIGIN } })
    expectOk(answer)
    expect(answer.headers['access-control-allow-origin']).toBe(ORIGIN)
    expect(answer.headers['access-control-expose-headers']).toMatch(/X-Request-Id/i)
    expect(answer.headers.vary).toMatch(/Origin/i)
  })

  it('reads nothing where another one may', async () => {
    const refused = await service
      .rawClient(undefined, open)
      .request('GET', '/api/v1/session', { headers: { Origin: OTHER } })
    expectError(refused, 401, 'unauthorized')
    expect(refused.headers['access-control-allow-origin']).toBeUndefined()
  })

  it('may call the API alone, and nothing of the operator or the console', async () => {
    const paths = [
      '/admin/v1/projects',
      '/console/data/access',
      '/console',
      '/metrics',
      '/openapi.json',
      '/nothing',
    ]
    for (const path of paths)
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' }
        const answer = await service.rawClient(undefined, open).request(method, path, { headers })
        expect(corsHeaders(answer.headers), `${method} ${path}`).toEqual([])
      }
  })

  it('reads a live tail, too', async () => {
    const { token } = await service.newProject()
    const log = await newSessionLog(await service.newClient({ token, node: open }))
    const response = await fetch(`${open.url}/api/v1/session/${log.id}/timeline`, {
      headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', Origin: ORIGIN },
    })
    await response.body!.cancel()
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('x-request-id')).toMatch(/^\S+$/)
  })
})

describe('a page of the service', () => {
  it('is held to its own files, cannot be framed, and sends no address on', async () => {
    const { headers } = await service.rawClient().request('GET', '/docs')
    const policy = String(headers['content-security-policy'])
    for (const part of [
      "default-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "object-src 'none'",
    ])
      expect(policy).toContain(part)
    expect(policy).not.toMatch(/https?:|\*/)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
  })

  it('and every other answer is taken for nothing else than it says', async () => {
    const paths = [
      '/health',
      '/ready',
      '/metrics',
      '/openapi.json',
      '/docs/reference.js',
      '/api/v1/ping',
      '/nothing',
    ]
    for (const path of paths)
      expect((await service.rawClient().request('GET', path)).headers['x-content-type-options'], path).toBe(
        'nosniff',
      )
  })
})

describe('the reference at /docs', () => {
  it('is compressed for whoever takes that, and says the same to whoever does not', async () => {
    for (const path of ['/openapi.json', '/docs/reference.js']) {
      const get = (encoding: string) =>
        service.rawClient().request('GET', path, { headers: { 'accept-encoding': encoding } })
      const [zipped, plain] = [await get('br, gzip'), await get('gzip;q=0')]
      expect(zipped.headers, path).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' })
      expect(plain.headers['content-encoding']).toBeUndefined()
      expect(Number(zipped.headers['content-length'])).toBeLessThan(0.4 * plain.text.length)
    }
  })

  it('begins with how to try it', async () => {
    const answer = await service.rawClient().request<unknown>('GET', '/openapi.json')
    const { info } = JSON.parse(answer.text) as { info: { description: string } }
    expect(info.description).toContain('## Try it')
    expect(info.description).toContain('Idempotency-Key')
  })
})

describe('the start', () => {
  const linesOf = (node: AnnalsServer) => node.logLines.filter((line) => line.includes('ANNALS_BEHIND_TLS'))

  it('listens on loopback and has nothing to warn of', () => {
    expect(new URL(service.node.url).hostname).toBe('127.0.0.1')
    expect(service.node.logLines.join('\n')).not.toMatch(/Warning/)
  })

  it('warns where other machines can reach it in the clear: in the log and for who started it', async () => {
    const node = await service.startNode({ HOST: '0.0.0.0' })
    // The log is written behind the start.
    await vi.waitFor(
      () =>
        expect(linesOf(node).map((line) => (line.startsWith('{') ? 'log' : line.slice(0, 8)))).toEqual(
          expect.arrayContaining(['log', 'Warning:']),
        ),
      { timeout: 15_000 },
    )
    const behind = await service.startNode({ HOST: '0.0.0.0', ANNALS_BEHIND_TLS: 'true' })
    expect(linesOf(behind)).toEqual([])
  })

  it('warns of an admin token that can be guessed, without telling it', async () => {
    const token = 'secret'.repeat(8)
    const node = await service.startNode({ ANNALS_ADMIN_TOKEN: token })
    await vi.waitFor(() => expect(node.logLines.join('\n')).toContain('ANNALS_ADMIN_TOKEN'), {
      timeout: 15_000,
    })
    expect(node.logLines.join('\n')).not.toContain(token)
  })
})
