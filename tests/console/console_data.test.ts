import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'

const service = useService()
let api: ApiClient
let stranger: ApiClient

beforeAll(async () => {
  api = await service.newClient()
  stranger = await service.newClient()
})

const heads = async (client: ApiClient, ids: string) =>
  expectOk(
    await client.request<{ items: Array<{ session_id: string; last_seq: number }> }>(
      'GET',
      '/console/data/heads',
      { query: { ids } },
    ),
  ).items

describe('the page of the console', () => {
  it.each(['/console', '/console/sessions', '/console/sessions/any?seq=3'])(
    'is at %s, under a policy without exceptions',
    async (path) => {
      const answer = await service.rawClient().request('GET', path)
      expect(answer.status).toBe(200)
      expect(answer.headers['content-type']).toMatch(/^text\/html/)
      const policy = String(answer.headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("connect-src 'self'")
      expect(policy).not.toMatch(/unsafe|\*|https?:/)
      expect(answer.headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
      })
    },
  )

  it('loads files that may be kept for ever, and one that is not there is 404', async () => {
    const visitor = service.rawClient()
    const page = await visitor.request('GET', '/console')
    const script = /src="([^"]+\.js)"/.exec(page.text)![1]!
    const answer = await visitor.request('GET', script)
    expect(answer.status).toBe(200)
    expect(answer.headers['cache-control']).toContain('immutable')
    expect((await visitor.request('GET', '/console/assets/none.js')).status).toBe(404)
    expect((await visitor.request('GET', '/console/assets/..%2f..%2fmain.js')).text).not.toContain(
      'startService',
    )
  })
})

describe('what the console reads beside the API', () => {
  it('has how many entries sessions have, and what their users are called', async () => {
    const { id, user_id } = expectOk(await api.createSession({ user: 'ada' }), 201)
    expectOk(await api.appendEvent(id, { type: 'note', data: {} }))
    expect(await heads(api, id)).toEqual([{ session_id: id, last_seq: 1, total_tokens: 0 }])
    const query = { ids: user_id! }
    expect(expectOk(await api.request('GET', '/console/data/identifiers', { query }))).toEqual({
      items: [{ id: user_id, identifier: 'ada' }],
    })
  })

  it('shows nothing of another project, and nothing without a key', async () => {
    const { id, user_id } = expectOk(await api.createSession({ user: 'grace' }), 201)
    expect(await heads(stranger, id)).toEqual([])
    const query = { ids: user_id! }
    expect(expectOk(await stranger.request('GET', '/console/data/identifiers', { query }))).toEqual({
      items: [],
    })
    for (const path of ['heads', 'identifiers', 'over_time'])
      expectError(await service.rawClient().request('GET', `/console/data/${path}`), 401, 'unauthorized')
  })

  it('counts sessions over time, all, of a user, or with configs', async () => {
    const fresh = await service.newClient()
    for (const [user, n] of [
      ['ada', 1],
      ['ada', 2],
      ['bob', 2],
    ] as const)
      expectOk(await fresh.createSession({ user, configs: { n } }), 201)
    const count = async (query: Record<string, string>) =>
      expectOk(
        await fresh.request<{ sessions: number; columns: Array<{ sessions: number }> }>(
          'GET',
          '/console/data/over_time',
          { query },
        ),
      )
    const all = await count({})
    expect(all.sessions).toBe(3)
    expect(all.columns.reduce((sum, { sessions }) => sum + sessions, 0)).toBe(3)
    expect((await count({ user: 'ada' })).sessions).toBe(2)
    expect((await count({ filter_by_configs: '{"n":2}' })).sessions).toBe(2)
    expect((await count({ user: 'bob', filter_by_configs: '{"n":1}' })).sessions).toBe(0)
    expect(await count({ user: 'nobody' })).toMatchObject({ sessions: 0, columns: [] })
  })

  it.each([
    ['heads', { ids: 'no-id' }],
    ['heads', { ids: Array(201).fill('01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d').join(',') }],
    ['identifiers', {}],
    ['over_time', { filter_by_configs: '[]' }],
    ['over_time', { users: 'ada' }],
  ])('refuses %s with %o', async (path, query) => {
    expectError(
      await api.request('GET', `/console/data/${path}`, { query: query as Record<string, string> }),
      400,
      'invalid_request',
    )
  })
})

describe('the address of the service', () => {
  it('leads a browser to the console, and tells a program that there is nothing', async () => {
    const visitor = service.rawClient()
    const shown = await visitor.request('GET', '/', { headers: { accept: 'text/html,*/*' } })
    expect(shown.status).toBe(302)
    expect(shown.headers.location).toBe('/console')
    expectError(await visitor.request('GET', '/'), 404, 'route_not_found')
  })

  it('prints no link at the start where the database is not the service’s own', () => {
    expect(service.node.lines.join('\n')).not.toContain('#code=')
  })
})
