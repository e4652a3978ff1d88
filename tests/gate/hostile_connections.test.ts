import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { rawConnection, readRawAnswer, sendRaw } from '../harness/raw_connection.ts'
import { type Project, useService } from '../harness/service.ts'

const service = useService()
/** A node that waits for requests for a moment only. */
let hasty: AnnalsServer
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  hasty = await service.startNode({ ANNALS_HEADERS_MS_MAX: '300', ANNALS_REQUEST_MS_MAX: '600' })
  api = await service.newClient({ token: project.token })
})

const head = (lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`
const post = (...lines: string[]) =>
  head([
    'POST /api/v1/session HTTP/1.1',
    'Host: annals',
    `Authorization: Bearer ${project.token}`,
    'Content-Type: application/json',
    ...lines,
  ])

/** What came is one answer, in the envelope, with all that every answer has. */
function expectRefusal(text: string, status: number, error: string): void {
  const answer = readRawAnswer(text)
  expect(answer.status, text).toBe(status)
  expect(answer.headers).toMatchObject({
    'content-type': expect.stringMatching(/^application\/json\b/),
    'content-length': String(Buffer.byteLength(answer.body)),
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^\S+$/),
  })
  expect(answer.headers.connection?.toLowerCase()).toBe('close')
  expect(JSON.parse(answer.body)).toEqual({ code: status, error, msg: expect.stringMatching(/\S+ \S+/) })
}

const sessions = async () => expectOk(await api.listSessions({ limit: 200 })).items.length

describe('what is no HTTP', () => {
  it.each<[string, string]>([
    ['words', 'hello\r\n\r\n'],
    ['a method that there is not', head(['STEAL /api/v1/session HTTP/1.1', 'Host: annals'])],
    ['HTTP/2 at once', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a header without a colon', head(['GET /health HTTP/1.1', 'Host annals'])],
    ['a header with NUL in it', head(['GET /health HTTP/1.1', 'Host: annals', 'X: a\0b'])],
    ['a folded header', head(['GET /health HTTP/1.1', 'Host: annals', 'X: a', ' b'])],
    [
      'a length twice',
      `${head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Content-Length: 2', 'Content-Length: 3'])}{}`,
    ],
    [
      'a length and chunks',
      `${head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked'])}0\r\n\r\n`,
    ],
    [
      'a body that is said to be compressed and chunked',
      `${head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Connection: close', 'Transfer-Encoding: gzip, chunked'])}0\r\n\r\n`,
    ],
    [
      'chunks in HTTP/1.0, whatever it asks of the connection',
      `${head(['POST /api/v1/session HTTP/1.0', 'Connection: keep-alive', 'Transfer-Encoding: chunked'])}0\r\n\r\n`,
    ],
    ['a negative length', head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Content-Length: -1'])],
    [
      'a chunk of no size',
      `${head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Transfer-Encoding: chunked'])}zz\r\n`,
    ],
  ])('is 400 in the envelope, and the connection ends: %s', async (_case, bytes) => {
    expectRefusal(await sendRaw(service.node.url, Buffer.from(bytes, 'latin1')), 400, 'invalid_request')
  })

  it('is 400 without a Host, which HTTP/1.0 may leave out', async () => {
    const without = await sendRaw(service.node.url, head(['GET /health HTTP/1.1', 'Connection: close']))
    expectRefusal(without, 400, 'invalid_request')
    const old = readRawAnswer(await sendRaw(service.node.url, head(['GET /health HTTP/1.0'])))
    expect(old.status).toBe(200)
  })

  it('does not become a second request after the first', async () => {
    const smuggled = 'GET /api/v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    const text = await sendRaw(
      service.node.url,
      `${head(['POST /api/v1/session HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', `Content-Length: ${5 + smuggled.length}`])}0\r\n\r\n${smuggled}`,
    )
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(text).not.toContain('smuggled')
  })
})

describe('what is too much', () => {
  it.each<[string, string]>([
    ['a URL', `GET /api/v1/session?user=${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['a header', head(['GET /health HTTP/1.1', 'Host: a', `X: ${'a'.repeat(20_000)}`])],
    [
      'many headers',
      head(['GET /health HTTP/1.1', 'Host: a', ...Array.from({ length: 3_000 }, (_, at) => `X-${at}: 1`)]),
    ],
  ])('is 431 in the envelope, and the connection ends: %s', async (_case, bytes) => {
    expectRefusal(await sendRaw(service.node.url, bytes), 431, 'headers_too_large')
  })

  it('is cut where headers never end', async () => {
    const { socket, closed } = await rawConnection(service.node.url)
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\n')
    let sent = 0
    const more = setInterval(() => {
      sent += 1
      socket.write(`X-${sent}: ${'a'.repeat(1_000)}\r\n`)
    }, 1)
    try {
      expectRefusal(await closed, 431, 'headers_too_large')
    } finally {
      clearInterval(more)
    }
  })

  it('is named where it is parameters: thousands of one name or of many', async () => {
    for (const parameters of [
      Array.from({ length: 7_000 }, () => 'a'),
      Array.from({ length: 2_500 }, (_, at) => `p${at}`),
      Array.from({ length: 1_500 }, () => 'limit=1'),
    ]) {
      const answer = await api.request('GET', `/api/v1/session?${parameters.join('&')}`)
      expectError(answer, 400, 'invalid_request', `parameter ${parameters[0]!.split('=')[0]}`)
    }
  })

  it('is never unpacked: a compressed body is 415, whatever is in it', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const before = await sessions()
    for (const encoding of ['gzip', 'deflate', 'br', 'gzip, gzip', 'x']) {
      const headers = { 'Content-Encoding': encoding }
      const answer = await api.request('POST', '/api/v1/session', { rawBody: bomb, headers })
      expectError(answer, 415, 'unsupported_media_type', 'Content-Encoding')
    }
    expect(await sessions()).toBe(before)
  })
})

describe('a header Expect', () => {
  const expecting = (value: string) =>
    sendRaw(service.node.url, `${post(`Expect: ${value}`, 'Connection: close', 'Content-Length: 2')}{}`)

  it.each(['9000', '', '100-continue, 9000'])('is 417 and stores nothing: "%s"', async (value) => {
    const before = await sessions()
    const text = await expecting(value)
    expectRefusal(text.replace('HTTP/1.1 100 Continue\r\n\r\n', ''), 417, 'expectation_failed')
    expect(await sessions()).toBe(before)
  })

  it.each(['100-continue', '100-Continue'])('may be %s', async (value) => {
    const text = await expecting(value)
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /)
  })
})

describe('what takes too long', () => {
  it.each<[string, () => string]>([
    ['nothing at all', () => ''],
    ['half a line', () => 'GET /hea'],
    ['headers without an end', () => 'GET /health HTTP/1.1\r\nHost: a\r\n'],
    ['a body without an end', () => `${post('Content-Length: 100')}{`],
    ['chunks without an end', () => `${post('Transfer-Encoding: chunked')}1\r\n{\r\n`],
  ])('is 408 in the envelope, and the connection ends: %s', async (_case, bytes) => {
    const before = await sessions()
    expectRefusal(await sendRaw(hasty.url, bytes()), 408, 'request_timeout')
    expect(await sessions()).toBe(before)
  })

  it('is cut where a header comes every now and then', async () => {
    const { socket, closed } = await rawConnection(hasty.url)
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\n')
    const more = setInterval(() => socket.write('X: a\r\n'), 50)
    try {
      expectRefusal(await closed, 408, 'request_timeout')
    } finally {
      clearInterval(more)
    }
  })
})

describe('a caller who leaves in the middle of a body', () => {
  it.each(['destroy', 'resetAndDestroy'] as const)('stores nothing and is no fault: %s', async (leave) => {
    const before = await sessions()
    const { socket, closed } = await rawConnection(hasty.url)
    socket.write(`${post('Content-Length: 100', `X-Request-Id: left-${leave}`)}{"user":"x"`)
    socket[leave]()
    await closed
    const lines = () =>
      hasty.logLines.map((line) => JSON.parse(line) as { request_id?: string; level: number })
    await vi.waitFor(
      () => expect(lines().some(({ request_id }) => request_id === `left-${leave}`)).toBe(true),
      { timeout: 15_000 },
    )
    expect(lines().filter(({ level }) => level > 30)).toEqual([])
    expect(await sessions()).toBe(before)
  })
})

describe('more connections than there may be', () => {
  it('are closed at once, and those before them go on', async () => {
    const node = await service.startNode({ ANNALS_CONNECTIONS_MAX: '3' })
    const held = await Promise.all([1, 2, 3].map(() => rawConnection(node.url)))
    const extra = await rawConnection(node.url)
    expect(await extra.closed).toBe('')
    const [first] = held
    first!.socket.write(head(['GET /health HTTP/1.1', 'Host: a', 'Connection: close']))
    expect(readRawAnswer(await first!.closed).status).toBe(200)
    for (const { socket } of held) socket.destroy()
  })
})

describe('what may be', () => {
  it('is UTF-8 spelt without its dash', async () => {
    for (const charset of ['utf8', 'UTF8', '"utf-8"', 'UTF-8']) {
      const headers = { 'Content-Type': `application/json; charset=${charset}` }
      expectOk(await api.request('POST', '/api/v1/session', { rawBody: '{}', headers }), 201)
    }
  })

  it('leaves the service as it was', async () => {
    for (const node of [service.node, hasty])
      expect((await service.rawClient(undefined, node).request('GET', '/ready')).status).toBe(200)
  })
})
