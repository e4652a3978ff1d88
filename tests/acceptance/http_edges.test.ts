import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let api: ApiClient
let sessionId: string
let spaceId: string

beforeAll(async () => {
  api = await service.newClient()
  sessionId = expectOk(await api.createSession({}), 201).id
  spaceId = expectOk(await api.createLearningSpace({}), 201).id
})

describe('a path that does not exist', () => {
  it.each([
    '/api/v1/',
    '/api/v1/nothing',
    '/api/v1/sessions',
    '/api/v1/Session',
    `/api/v1/session/${NOBODYS_ID}/nothing`,
    `/api/v1/session/${NOBODYS_ID}/events/1`,
    '/api/v1//session',
    '/api/v1/session/../session',
    '/api/v2/session',
    '/nothing',
    '/admin/v1/nothing',
  ])('is 404 route_not_found: %s', async (path) => {
    for (const method of ['GET', 'POST']) {
      const answer = await api.request(method, path)
      // What lies under /admin/v1 is not shown to a project's token.
      if (path.startsWith('/admin') && answer.status === 401) continue
      expectError(answer, 404, 'route_not_found')
    }
  })
})

describe('a path that is nearly right', () => {
  it.each([
    ['GET', '/api/v1/sessions', '/api/v1/session'],
    ['POST', `/api/v1/session/${NOBODYS_ID}/event?x=1`, `/api/v1/session/${NOBODYS_ID}/events`],
    ['GET', '/session', '/api/v1/session'],
    ['POST', '/v1/learning_space', '/api/v1/learning_spaces'],
    ['GET', '/api/v1/api/v1/session/', '/api/v1/session'],
  ])('is refused with the right one: %s %s', async (method, path, meant) => {
    const answer = await api.request(method, path)
    expectError(answer, 404, 'route_not_found', `Did you mean ${meant}?`)
  })

  it.each(['/api/v1/nothing', '/api/v1/notes', '/', '/api/v1/'])('is not made up: %s', async (path) => {
    const answer = await api.request('GET', path)
    expectError(answer, 404, 'route_not_found', 'See /docs for all operations.')
  })
})

describe('a path that is no path', () => {
  it.each(['/api/v1/%zz', '/api/v1/session/%ff', '/api/v1/session/%E0%A4%A', '/api/v1/session/'])(
    'is 400 or 404, in the envelope: %s',
    async (path) => {
      const answer = await api.request('GET', path)
      if (answer.status === 400) expectError(answer, 400, 'invalid_request')
      else expectError(answer, 404, 'route_not_found')
    },
  )
})

describe('a method that a path does not have', () => {
  it.each<[string, () => string, string[]]>([
    ['PUT', () => '/api/v1/session', ['GET', 'POST']],
    ['DELETE', () => '/api/v1/session', ['GET', 'POST']],
    ['POST', () => `/api/v1/session/${sessionId}`, ['GET', 'DELETE']],
    ['PUT', () => `/api/v1/session/${sessionId}/events`, ['GET', 'POST']],
    ['DELETE', () => `/api/v1/session/${sessionId}/events`, ['GET', 'POST']],
    ['PATCH', () => '/api/v1/learning_spaces', ['POST']],
    ['POST', () => `/api/v1/learning_spaces/${spaceId}`, ['GET']],
    ['POST', () => '/api/v1/ping', ['GET']],
  ])('is 405 with Allow: %s', async (method, path, allowed) => {
    const answer = await api.request(method, path())
    expectError(answer, 405, 'method_not_allowed')
    const allow = answer.headers.allow?.split(/\s*,\s*/) ?? []
    expect(allow).toEqual(expect.arrayContaining(allowed))
    expect(allow).not.toContain(method)
  })

  it('has no effect', async () => {
    expectOk(await api.getSession(sessionId))
    expectOk(await api.getLearningSpace(spaceId))
  })
})

describe('an unknown query parameter', () => {
  it('is refused and named on every route', async () => {
    const routes: Array<[string, string, object?]> = [
      ['GET', '/api/v1/ping'],
      ['GET', '/api/v1/session'],
      ['POST', '/api/v1/session', {}],
      ['GET', `/api/v1/session/${sessionId}`],
      ['DELETE', `/api/v1/session/${sessionId}`],
      ['GET', `/api/v1/session/${sessionId}/events`],
      ['POST', `/api/v1/session/${sessionId}/events`, { type: 'a', data: {} }],
      ['POST', '/api/v1/learning_spaces', {}],
      ['GET', `/api/v1/learning_spaces/${spaceId}`],
    ]
    for (const [method, path, body] of routes) {
      const answer = await api.request(method, `${path}?surprise=1`, { body })
      expectError(answer, 400, 'invalid_request', 'surprise')
    }
    expectOk(await api.getSession(sessionId))
    expect(expectOk(await api.listEvents(sessionId)).items).toEqual([])
  })
})

describe('X-Request-Id', () => {
  const requestIdFor = async (sent: string | undefined) => {
    const headers: Record<string, string> = sent === undefined ? {} : { 'X-Request-Id': sent }
    const answer = await api.request('GET', '/api/v1/ping', { headers })
    return answer.headers['x-request-id'] as string
  }

  it.each(['a', 'trace-42', '01890a5d-ac96-774b-bcce-b302099a8057', 'Root_1.2-3', 'x'.repeat(64)])(
    'of the caller comes back: %s',
    async (sent) => {
      expect(await requestIdFor(sent)).toBe(sent)
    },
  )

  it('is made, anew each time, when the caller sends none', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => requestIdFor(undefined)))
    expect(new Set(ids).size).toBe(20)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{8,128}$/)
  })

  it.each(['', ' ', 'a b', '<script>', '"quoted"', 'a\tb', 'é', 'x'.repeat(2_000), '{"a":1}'])(
    'that is not sane is replaced: %s',
    async (sent) => {
      const id = await requestIdFor(sent)
      expect(id).not.toBe(sent)
      expect(id).toMatch(/^[A-Za-z0-9._-]{8,128}$/)
    },
  )

  it('is on errors and on the pages outside the API too', async () => {
    const headers = { 'X-Request-Id': 'on-every-answer' }
    for (const path of ['/api/v1/nothing', '/api/v1/session?limit=0', '/health', '/ready', '/openapi.json']) {
      expect((await api.request('GET', path, { headers })).headers['x-request-id']).toBe('on-every-answer')
    }
    const unauthorized = await service.rawClient().request('GET', '/api/v1/session', { headers })
    expect(unauthorized.headers['x-request-id']).toBe('on-every-answer')
  })
})

describe('HEAD and OPTIONS', () => {
  it('HEAD is as GET without a body, or not allowed', async () => {
    for (const path of ['/api/v1/session', `/api/v1/session/${sessionId}`, '/health']) {
      const answer = await api.request('HEAD', path)
      expect([200, 405]).toContain(answer.status)
      expect(answer.text).toBe('')
      expect(answer.headers['x-request-id']).toMatch(/^\S+$/)
    }
    expect([401, 405]).toContain((await service.rawClient().request('HEAD', '/api/v1/session')).status)
  })

  it('OPTIONS tells the methods, and never opens the API to other origins with a credential', async () => {
    const answer = await api.request('OPTIONS', '/api/v1/session', {
      headers: { Origin: 'https://elsewhere.test' },
    })
    expect([200, 204, 405]).toContain(answer.status)
    expect(answer.headers.allow ?? answer.headers['access-control-allow-methods']).toMatch(
      /GET.*POST|POST.*GET/,
    )
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
  })
})

describe('a GET or DELETE', () => {
  it('has no body: one that is sent means nothing, whatever it is', async () => {
    for (const [rawBody, type] of [
      ['{', 'application/json'],
      ['x', 'text/plain'],
      ['{"a":1}', 'application/json; charset=utf-16'],
    ]) {
      const { id } = expectOk(await api.createSession({}), 201)
      const options = { rawBody: rawBody!, headers: { 'Content-Type': type! } }
      expectOk(await api.request('GET', `/api/v1/session/${id}`, options))
      expectOk(await api.request('DELETE', `/api/v1/session/${id}`, options))
    }
  })

  it('with a content type and no body is served, as some clients send it', async () => {
    const headers = { 'Content-Type': 'application/json' }
    expectOk(await api.request('GET', `/api/v1/session/${sessionId}`, { headers }))
    const { id } = expectOk(await api.createSession({}), 201)
    expectOk(await api.request('DELETE', `/api/v1/session/${id}`, { headers }))
  })
})
