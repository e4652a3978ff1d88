import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { consoleHeaders, signInToConsole } from '../harness/console_session.ts'
import { describedOperations } from '../harness/described_operations.ts'
import { readRawAnswer, sendRaw } from '../harness/raw_connection.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let token: string

beforeAll(async () => {
  ;({ token } = await service.newProject())
})

/** Sends a request as it stands: no client makes its path another one on the way. */
async function send(head: string[], body = '') {
  const lines = head.some((line) => /^host:/i.test(line)) ? head : [...head, 'Host: annals']
  return readRawAnswer(
    await sendRaw(service.node.url, `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`),
  )
}

const PLACES = [
  '/console',
  '/console/assets',
  '/console/data',
  '/console/demo.json',
  '/docs',
  '/docs/reference.js',
  '/openapi.json',
  '/api/v1',
  '/admin/v1',
]
const BELOW = [
  '/..',
  '/.',
  '/../x',
  '/./x',
  '/x/../../x',
  `/${'../'.repeat(1_000)}etc/passwd`,
  '//x',
  '/%2e%2e/x',
  '/..%2fx',
  '/%2e%2e%2f%2e%2e%2fpackage.json',
  '/..%5cx',
  '/..\\x',
  '/%00',
  '/x%00.js',
  '/%252e%252e%252fx',
  '/%c0%ae%c0%ae/x',
  '/%ff',
  '/%',
  '/%zz',
  '/%2f%2fexample.com/%2e%2e',
  '/.hidden',
  '/;x',
  '/con',
  `/${'a'.repeat(8_000)}`,
]

describe('a path that no page links to', () => {
  it.each(PLACES)('is answered and no fault below %s, however it is spelt', async (place) => {
    for (const below of BELOW) {
      for (const method of ['GET', 'HEAD', 'POST']) {
        const answer = await send([`${method} ${place}${below} HTTP/1.1`])
        const name = `${method} ${place}${below.slice(0, 60)}`
        expect([200, 400, 401, 404, 405], name).toContain(answer.status)
        if (answer.status === 200) expect(answer.headers['content-type'], name).toContain('text/html')
        expect(answer.body, name).not.toMatch(/root:|"dependencies"/)
      }
    }
  })

  it('is 404 where it leads out of the directory of files', async () => {
    const page = readFileSync(
      new URL('../../packages/server/dist/console/index.html', import.meta.url),
      'utf8',
    )
    const [asset] = /\/console\/assets\/[\w.-]+/.exec(page)!
    expect((await send([`GET ${asset} HTTP/1.1`])).status).toBe(200)
    const answer = await send(['GET /console/assets/../x HTTP/1.1'])
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([404, 'route_not_found'])
    expect(JSON.parse(answer.body).msg).toContain('There is no GET /console/assets/../x')
  })
})

describe('a query that is not UTF-8', () => {
  it.each(['%ff', '%c0%80', '%ed%a0%80', '%zz', '%', '%e2%82'])(
    'is 400, and names nobody: %s',
    async (text) => {
      const key = `Authorization: Bearer ${token}`
      const list = (user: string) => send([`GET /api/v1/session?user=${user} HTTP/1.1`, key])
      expect((await list(encodeURIComponent(text))).status).toBe(200)
      const answer = await list(text)
      expect([answer.status, JSON.parse(answer.body).error]).toEqual([400, 'invalid_request'])
      expect(JSON.parse(answer.body).msg).toContain('Percent-encode it as UTF-8')
    },
  )
})

describe('a version of HTTP that is not spoken here', () => {
  it.each(['GET /health HTTP/2.0', 'GET /health HTTP/0.9', 'GET /health'])('is 400: %s', async (line) => {
    const answer = await send([line])
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([400, 'invalid_request'])
  })
})

describe('a header that is sent twice', () => {
  const twice: [name: string, ...values: string[]][] = [
    ['Host', 'annals', 'elsewhere'],
    ['HOST', 'annals', 'annals'],
    ['Authorization', 'Bearer first', 'Bearer second'],
    ['Content-Type', 'application/json', 'text/plain'],
    ['Content-Length', '2', '2'],
    ['Idempotency-Key', 'first', 'second'],
    ['If-Match', '"1"', '"2"'],
    ['Last-Event-ID', '1', '2'],
  ]
  it.each(twice)('is 400 where one value alone has a meaning: %s', async (name, ...values) => {
    const own = values.map((value, index) => `${index ? name : name.toLowerCase()}: ${value}`)
    const shared = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', 'Content-Length: 2']
    const others = shared.filter((line) => !line.startsWith(`${name}:`))
    const answer = await send(['POST /api/v1/session HTTP/1.1', ...others, ...own], '{}')
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([400, 'invalid_request'])
    if (name !== 'Content-Length')
      expect(JSON.parse(answer.body).msg).toContain(`Header ${name.toLowerCase()}`)
  })

  it('is 400 for the console, too', async () => {
    const { session, answer } = await signInToConsole(service.rawClient(), { token })
    const own = Object.entries(consoleHeaders(session.cookie, answer.json.data.project_id))
    const lines = own.map(([name, value]) => `${name}: ${value}`)
    const body = ['Content-Type: application/json', 'Content-Length: 2']
    const create = (...more: string[]) =>
      send(['POST /console/api/v1/session HTTP/1.1', ...lines, ...body, ...more], '{}')
    expect((await create('Idempotency-Key: first')).status).toBe(201)
    const twice = await create('Idempotency-Key: first', 'Idempotency-Key: second')
    expect([twice.status, JSON.parse(twice.body).error]).toEqual([400, 'invalid_request'])
  })

  it('is found, or refused, after however many others', async () => {
    const others = Array.from({ length: 1_100 }, () => 'a:')
    const answer = await send(['GET /health HTTP/1.1', 'Host: annals', ...others, 'Host: elsewhere'])
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([431, 'headers_too_large'])
  })

  it('is taken where it means a list', async () => {
    const answer = await send(['GET /health HTTP/1.1', 'Accept: text/html', 'Accept: */*'])
    expect(answer.status).toBe(200)
  })
})

describe('what a cache may keep', () => {
  it('is nothing that is for the holder of a key, errors included', async () => {
    const project = '/admin/v1/projects'
    const paths = [...new Set(describedOperations.map(({ path }) => path.replace(/\{\w+\}/g, 'x')))]
    const others = [
      '/console/access',
      '/console/data/figures?ids=x',
      project,
      '/nothing',
      '/health',
      '/metrics',
    ]
    for (const key of [token, 'unknown'])
      for (const path of [...paths, ...others])
        for (const method of ['GET', 'POST'])
          expect(
            (await send([`${method} ${path} HTTP/1.1`, `Authorization: Bearer ${key}`])).headers[
              'cache-control'
            ],
            `${method} ${path}`,
          ).toBe(path === '/openapi.json' ? 'public, max-age=300' : 'no-store')
  })

  it('is nothing of what was never understood', async () => {
    const answer = await send(['GET /health HTTP/1.1', 'Bad header'])
    expect([answer.status, answer.headers['cache-control']]).toEqual([400, 'no-store'])
  })

  it('is the reference for a moment, and files whose names have a digest for good', async () => {
    const cacheOf = async (path: string) => (await send([`GET ${path} HTTP/1.1`])).headers['cache-control']
    expect(await cacheOf('/docs')).toBe('public, max-age=300')
    expect(await cacheOf('/openapi.json')).toBe('public, max-age=300')
    expect(await cacheOf('/console')).toBe('no-cache')
    const page = (await send(['GET /console HTTP/1.1'])).body
    const [asset] = /\/console\/assets\/[\w.-]+/.exec(page)!
    expect(await cacheOf(asset!)).toMatch(/max-age=31536000, immutable/)
  })
})
