import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, useBrowser } from '../harness/browser.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

const PRICES = { currency: 'USD', models: { 'claude-x': { input: 3, output: 15 } } }
const service = useService({ ANNALS_PRICES: JSON.stringify(PRICES) })
const browser = useBrowser()
let api: ApiClient
let stranger: ApiClient

beforeAll(async () => {
  api = await service.newClient()
  stranger = await service.newClient()
})

interface Figures {
  session_id: string
  [name: string]: unknown
}

const figures = async (client: ApiClient, ids: string) =>
  expectOk(await client.request<{ items: Figures[] }>('GET', '/console/data/figures', { query: { ids } }))
    .items

/** Figures of sessions that were read to their ends. */
const wholeFigures = (ids: string) =>
  vi.waitFor(
    async () => {
      const found = await figures(api, ids)
      expect(found.every(({ is_whole }) => is_whole)).toBe(true)
      return found
    },
    { timeout: 30_000 },
  )

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
  it('has the figures of sessions: title, entries, tokens, duration, calls and failures', async () => {
    const { id, user_id } = expectOk(await api.createSession({ user: 'ada' }), 201)
    const log = sessionLog(api, id)
    const calls = ['a', 'b'].map((name) => ({
      id: name,
      type: 'function',
      function: { name, arguments: '{}' },
    }))
    expectOk(await log.add({ role: 'system', content: 'Be brief.' }), 201)
    expectOk(await log.add({ role: 'user', content: '  Which  seats\nare free? ' }), 201)
    expectOk(await log.add({ role: 'assistant', content: null, tool_calls: calls }), 201)
    expectOk(await log.addEvent('tool_call', { id: 'a', name: 'a' }))
    expectOk(await log.add({ role: 'tool', tool_call_id: 'a', content: 'Error: none' }), 201)
    expectOk(await log.add({ role: 'tool', tool_call_id: 'b', content: '12 C' }), 201)
    const { total_tokens } = expectOk(await log.tokens())
    const imported = await newSessionLog(api)
    const occurred_at = '2026-01-02T03:04:05Z'
    expectOk(await imported.add({ role: 'user', content: 'Hi' }, { occurred_at }), 201)
    const [past] = await wholeFigures(imported.id)
    expect(past).toMatchObject({ began_at: '2026-01-02T03:04:05.000000Z', last_seq: 1 })
    const named = expectOk(await api.createSession({ configs: { title: 'Night run' } }), 201).id
    const untitled = expectOk(await api.createSession({ configs: { title: { not: 'text' } } }), 201).id
    const found = new Map(
      (await wholeFigures([id, named, untitled].join())).map((one) => [one.session_id, one]),
    )
    const counted = { last_seq: 6, total_tokens, calls: 2, failures: 1, is_whole: true }
    expect(found.get(id)).toMatchObject({ title: 'Which seats are free?', ...counted })
    const [first] = expectOk(await log.timeline()).items
    expect(found.get(id)!.began_at).toBe(first!.created_at)
    expect(found.get(id)!.duration_ms).toBeGreaterThan(0)
    const nothing = { calls: 0, failures: 0 }
    const none = {
      last_seq: 0,
      total_tokens: 0,
      began_at: null,
      duration_ms: 0,
      is_whole: true,
      summary: null,
      ...nothing,
    }
    expect(found.get(named)).toEqual({ session_id: named, title: 'Night run', ...none })
    expect(found.get(untitled)).toEqual({ session_id: untitled, title: null, ...none })
    const query = { ids: user_id! }
    expect(expectOk(await api.request('GET', '/console/data/identifiers', { query }))).toEqual({
      items: [{ id: user_id, identifier: 'ada' }],
    })
  })

  it('counts the sessions of users by how they ended, and says when the latest of them grew', async () => {
    const created = []
    for (const outcome of ['failed', 'passed', 'failed'])
      created.push(expectOk(await api.createSession({ user: 'grace', configs: { run: { outcome } } }), 201))
    expectOk(await sessionLog(api, created[0]!.id).addEvent())
    const { updated_at } = expectOk(await api.getSession(created[0]!.id))
    const user_id = created[0]!.user_id!
    const idle = expectOk(await api.createLearningSpace({ user: 'idle' }), 201).user_id!
    const stranger = expectOk(await (await service.newClient()).createSession({ user: 'grace' }), 201)
      .user_id!
    const query = { ids: [user_id, idle, stranger].join(), by: '["run","outcome"]' }
    const { items } = expectOk(
      await api.request<{ items: Array<{ id: string }> }>('GET', '/console/data/users', { query }),
    )
    expect(items.sort((a, b) => (a.id === user_id ? -1 : Number(b.id === user_id)))).toEqual([
      { id: user_id, sessions: 3, last_activity: updated_at, by: { '"failed"': 2, '"passed"': 1 } },
      { id: idle, sessions: 0, last_activity: null, by: {} },
    ])
    expect(await api.request('GET', '/console/data/users', { query: { ids: 'x' } })).toMatchObject({
      status: 400,
    })
  })

  it('tell that an automatic summary waits, or could not be written', async () => {
    const { id, project_id } = expectOk(await api.createSession(), 201)
    const insert = `INSERT INTO auto_compactions AS a (project_id, session_id, tokens, due_at, attempts)
      VALUES ($1, $2, 9000, now() + interval '5 minutes', 1) RETURNING 1`
    await queryRows(service.databaseUrl, insert, [project_id, id])
    expect(await figures(api, id)).toMatchObject([{ summary: 'waits' }])
    const failed = `UPDATE auto_compactions AS a SET due_at = NULL, attempts = 3
      WHERE a.project_id = $1 AND a.session_id = $2 RETURNING 1`
    await queryRows(service.databaseUrl, failed, [project_id, id])
    expect(await figures(api, id)).toMatchObject([{ summary: 'failed' }])
  })

  it('counts the calls of a long session to its end', async () => {
    const log = await newSessionLog(api)
    const event = { kind: 'event', type: 'tool_call', data: { name: 'f', arguments: { n: 1 } } }
    expectOk(await log.batch(Array.from({ length: 250 }, () => event)), 201)
    for (let n = 0; n < 3; n++)
      expectOk(await log.addEvent('tool_call', { name: 'f', result: 'Error: no', text: 'x'.repeat(60_000) }))
    expect((await wholeFigures(log.id))[0]).toMatchObject({ last_seq: 253, calls: 253, failures: 3 })
  })

  it('has a cursor with which the list of sessions begins at a time, in either order', async () => {
    const fresh = await service.newClient()
    const made = []
    for (let n = 0; n < 4; n++) made.push(expectOk(await fresh.createSession({ user: 'ada' }), 201))
    const at = made[2]!.created_at
    const from = async (query: Record<string, string>) => {
      const { cursor } = expectOk(
        await fresh.request<{ cursor: string }>('GET', '/console/data/start', { query: { ...query, at } }),
      )
      return expectOk(await fresh.listSessions({ ...query, cursor })).items.map(({ id }) => id)
    }
    const ids = made.map(({ id }) => id)
    expect(await from({ time_desc: 'false' })).toEqual(ids.slice(2))
    expect(await from({ time_desc: 'true', user: 'ada' })).toEqual([ids[1], ids[0]])
  })

  it('shows nothing of another project, and nothing without a key', async () => {
    const { id, user_id } = expectOk(await api.createSession({ user: 'grace' }), 201)
    expect(await figures(stranger, id)).toEqual([])
    const query = { ids: user_id! }
    expect(expectOk(await stranger.request('GET', '/console/data/identifiers', { query }))).toEqual({
      items: [],
    })
    expectOk(await api.createSession({ parent: id }), 201)
    const tree = (client: ApiClient) => client.request('GET', '/console/data/tree', { query: { id } })
    expect(expectOk(await tree(api)).items).toHaveLength(2)
    expect(expectOk(await tree(stranger))).toEqual({ items: [], more: 0 })
    for (const path of ['figures', 'identifiers', 'over_time', 'start', 'tree'])
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
        await fresh.request<{
          sessions: number
          columns: Array<{ sessions: number; by: Record<string, number> }>
        }>('GET', '/console/data/over_time', { query }),
      )
    const all = await count({})
    expect(all.sessions).toBe(3)
    expect(all.columns.reduce((sum, { sessions }) => sum + sessions, 0)).toBe(3)
    expect((await count({ user: 'ada' })).sessions).toBe(2)
    expect((await count({ filter_by_configs: '{"n":2}' })).sessions).toBe(2)
    expect((await count({ user: 'bob', filter_by_configs: '{"n":1}' })).sessions).toBe(0)
    expect(await count({ user: 'nobody' })).toMatchObject({ sessions: 0, columns: [] })
    const by_n = (await count({ by: '["n"]' })).columns.map(({ by }) => by)
    expect(by_n.reduce((sum, by) => sum + (by['2'] ?? 0), 0)).toBe(2)
    expect((await count({ from: '2999-01-01T00:00:00Z' })).sessions).toBe(0)
    expect((await count({ to: '2999-01-01T00:00:00Z', from: '2000-01-01T00:00:00Z' })).sessions).toBe(3)
  })

  it('counts a session over time where it began, not where it was imported', async () => {
    const fresh = await service.newClient()
    const imported = await newSessionLog(fresh)
    const occurred_at = '2020-05-06T07:08:09Z'
    expectOk(await imported.add({ role: 'user', content: 'Hi' }, { occurred_at }), 201)
    const { seconds, columns } = expectOk(
      await fresh.request<{ seconds: number; columns: Array<{ start: string; sessions: number }> }>(
        'GET',
        '/console/data/over_time',
      ),
    )
    expect([seconds, columns]).toEqual([
      1,
      [{ start: '2020-05-06T07:08:09.000000Z', sessions: 1, by: { '': 1 } }],
    ])
  })

  it.each([
    ['figures', { ids: 'no-id' }],
    ['figures', { ids: Array(51).fill('01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d').join(',') }],
    ['identifiers', {}],
    ['over_time', { filter_by_configs: '[]' }],
    ['over_time', { users: 'ada' }],
    ['over_time', { by: 'outcome' }],
    ['over_time', { by: '[1]' }],
    ['over_time', { by: '["\\u0000"]' }],
    ['over_time', { from: 'yesterday' }],
    ['over_time', { to: '2026-02-30T00:00:00Z' }],
    ['start', { at: '2026-13-01T00:00:00Z', time_desc: 'true' }],
    ['start', { at: '2026-01-01T00:00:00Z' }],
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

describe.skipIf(!CHROMIUM)(`costs (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('are shown with a session by the price list, and only to those who signed in', async () => {
    expectError(await service.rawClient().request('GET', '/console/data/prices'), 401, 'unauthorized')
    const { token } = await service.newProject()
    const client = await service.newClient({ token })
    const { id } = expectOk(await client.createSession(), 201)
    const usage = { input_tokens: 1_000, output_tokens: 100 }
    const blob = { id: 'a', model: 'claude-x', role: 'assistant', content: 'Hello', usage }
    const path = `/api/v1/session/${id}/messages`
    expectOk(await client.request('POST', path, { body: { format: 'anthropic', blob } }), 201)
    const { page } = await browser.open(`${service.node.url}/console`)
    await signIn(page, token)
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await page.locator('.facts', { hasText: '0.0045 USD' }).waitFor()
  })
})
