import { createHash, randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk, NOBODYS_ID, UUID } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useSharedService()
let api: ApiClient
let stranger: ApiClient
let second: ApiClient
let session: string
let token: string
let project_id: string

beforeAll(async () => {
  const project = await service.newProject()
  token = project.token
  project_id = project.id
  api = await service.newClient({ token: project.token })
  second = await service.newClient({ token: project.token, node: service.secondNode })
  stranger = await service.newClient()
})

beforeEach(async () => {
  session = expectOk(await api.createSession({}), 201).id
})

const adminKey = () =>
  issueToken(service.adminClient(), project_id, { name: 'thief', scopes: ['write', 'admin'] })

interface Lease {
  fence: number
  owner: string
  expires_at: string
}

const at = (path: string, id = session) => `/api/v1/session/${id}${path}`
const take = (owner: string, more: object = {}, client = api): Promise<Answer<Lease>> =>
  client.request('POST', at('/lease'), { body: { owner, ttl_ms: 30_000, ...more } })
const run = async (id = session) =>
  (expectOk(await api.getSession(id)) as unknown as { run: Record<string, unknown> }).run
const send = (body: object, id = session, client = api) =>
  client.request('POST', at('/inbox', id), {
    body: { mode: 'queue', kind: 'event', type: 'go', data: {}, ...body },
  })
const claim = (owner: string, more: object = {}, client = api): Promise<Answer<{ items: Claimed[] }>> =>
  client.request('POST', '/api/v1/work/claim', { body: { owner, ttl_ms: 30_000, ...more } })
const open = (body: object, client = api): Promise<Answer<Asked>> =>
  client.request('POST', at('/requests'), { body: { kind: 'approval', ...body } })
const resolve = (id: string, body: object, client = api): Promise<Answer<Asked>> =>
  client.request('POST', `/api/v1/requests/${id}/resolve`, { body })

interface Claimed extends Lease {
  session_id: string
  inputs: Array<{ id: string; data: unknown }>
}
interface Page {
  items: Asked[]
  has_more: boolean
  next_cursor: string
}
interface Asked {
  id: string
  seq: number
  state: string
  call_sha256: string
  decision?: string
}

describe('a lease', () => {
  it('has one holder, whose fence is greater than all before it', async () => {
    const first = expectOk(await take('a'))
    expectError(await take('b'), 409, 'leased', '"a"', first.expires_at)
    expectOk(await api.request('PUT', at('/lease'), { body: { fence: first.fence, ttl_ms: 60_000 } }))
    expect(await run()).toMatchObject({ state: 'running', owner: 'a', fence: first.fence })
    for (const _twice of [1, 2])
      expectOk(await api.request('DELETE', at('/lease'), { query: { fence: first.fence } }))
    expect(await run()).toMatchObject({ state: 'idle', fence: first.fence })
    const next = expectOk(await take('b'))
    expect(next.fence).toBeGreaterThan(first.fence)
    expectError(
      await api.request('PUT', at('/lease'), { body: { fence: first.fence, ttl_ms: 60_000 } }),
      409,
      'fenced',
      String(next.fence),
    )
    expectOk(await api.request('DELETE', at('/lease'), { query: { fence: first.fence } }))
    expectError(await take('c'), 409, 'leased', '"b"')
  })

  it('goes to its own owner again with a new fence, so that a lost answer costs nothing', async () => {
    const first = expectOk(await take('a'))
    const again = expectOk(await take('a'))
    expect(again.fence).toBeGreaterThan(first.fence)
  })

  it('is waited for, on another node, until it is released or has expired', async () => {
    const first = expectOk(await take('a'))
    const waiting = take('b', { wait_ms: 20_000 }, second)
    expectOk(await api.request('DELETE', at('/lease'), { query: { fence: first.fence } }))
    expect(expectOk(await waiting).owner).toBe('b')
    expectOk(await take('b', { ttl_ms: 1_000 }))
    expect(expectOk(await take('c', { wait_ms: 20_000 }, second)).owner).toBe('c')
  })

  it('is refused after the wait, to those who may not steal it, and to the waiter whose session is deleted', async () => {
    expectOk(await take('a'))
    expectError(await take('b', { wait_ms: 50 }), 409, 'leased')
    expectError(await take('b', { steal: true }), 403, 'insufficient_scope', 'admin')
    const waiting = take('b', { wait_ms: 20_000 })
    expectOk(await api.deleteSession(session))
    expectError(await waiting, 404, 'session_not_found')
  })

  it('with progress is not kept by renewals alone', async () => {
    const { fence } = expectOk(await take('a', { ttl_ms: 1_000, progress: true }))
    const renew = () => api.request('PUT', at('/lease'), { body: { fence, ttl_ms: 1_000 } })
    expectOk(await renew())
    expect(expectOk(await take('b', { wait_ms: 20_000 })).owner).toBe('b')
    expectError(await renew(), 409, 'fenced')
  })

  it.each([
    ['/ttl_ms', { ttl_ms: 999 }],
    ['/ttl_ms', { ttl_ms: 600_001 }],
    ['/wait_ms', { wait_ms: 30_001 }],
    ['/owner', { owner: '' }],
    ['/stael', { stael: true }],
  ])('names what is wrong: %s', async (place, more) => {
    expectError(await take('a', more), 400, 'invalid_request', place)
  })
})

describe('the inbox', () => {
  it('keeps input in order, once for each id, beside the log', async () => {
    const id = randomUUID()
    const added = expectOk(await send({ id, data: { n: 1 } }), 201)
    expect(added).toMatchObject({ id, state: 'pending', input: { id, type: 'go', mode: 'queue' } })
    expect(expectOk(await send({ id, data: { n: 1 } }), 201)).toEqual(added)
    for (const other of [{ data: { n: 2 } }, { data: { n: 1 }, key: 'k' }])
      expectError(await send({ id, ...other }), 422, 'idempotency_key_reused')
    const blob = { role: 'user', content: 'hi' }
    const message = { kind: 'message', type: undefined, data: undefined, blob }
    expectOk(await send({ ...message, mode: 'interrupt' }), 201)
    expectError(await send({ ...message, blob: { role: 'nobody' } }), 400, 'invalid_request', '/blob/role')
    expectError(await send({ type: 'annals.request' }), 400, 'invalid_request', '/type')
    expectError(await send({ not_before: '2026-02-30T00:00:00Z' }), 400, 'invalid_request', '/not_before')
    const first = await list({ limit: 1 })
    expect(first.items.map((item) => item.id)).toEqual([id])
    const rest = await list({ limit: 1, cursor: first.next_cursor })
    expect(rest).toMatchObject({ items: [{ mode: 'interrupt', blob: { content: 'hi' } }], has_more: false })
    expect(expectOk(await api.listEvents(session)).items).toEqual([])
    expect(await run()).toMatchObject({ state: 'queued', pending: 2 })
  })

  it('forgets what was withdrawn, and does not take it again', async () => {
    const id = randomUUID()
    expectOk(await send({ id }), 201)
    for (const _twice of [1, 2])
      expectOk(await api.request('DELETE', at(`/inbox/${id}`), { query: { reason: 'no' } }))
    expect((await list({})).items).toEqual([])
    expect((await list({ state: 'withdrawn' })).items).toMatchObject([
      { id, state: 'withdrawn', reason: 'no' },
    ])
    expect(expectOk(await send({ id }), 201)).toMatchObject({ state: 'withdrawn' })
    expect(await run()).toMatchObject({ state: 'idle', pending: 0 })
    expectError(await api.request('DELETE', at(`/inbox/${NOBODYS_ID}`)), 404, 'input_not_found')
  })

  it('keeps the attachments of what is pending, and counts in the usage of its project', async () => {
    const bytes = newBytes(100)
    const input = (sha256: string) =>
      send({ data: { file: { annals_blob: sha256, media_type: 'text/plain' } } })
    expectError(await input('a'.repeat(64)), 409, 'blob_missing', '/data/file')
    await putBlob(service.node.url, token, bytes)
    const { id } = expectOk(await input(sha256Of(bytes)), 201)
    const references = () =>
      queryRows(service.databaseUrl, 'SELECT seq FROM blob_references WHERE owner_id = $1', [session])
    expect(await references()).toHaveLength(1)
    expectOk(await api.request('POST', at('/entries'), { body: { apply: [id] } }), 201)
    expect(await references()).toHaveLength(2)
    const own = await service.newClient()
    const { id: other } = expectOk(await own.createSession({}), 201)
    expectOk(await send({ data: { text: 'x'.repeat(5_000) } }, other, own), 201)
    const usage = expectOk(await own.request<{ bytes: { used: number } }>('GET', '/api/v1/usage'))
    expect(usage.bytes.used).toBeGreaterThan(5_000)
  })

  const list = async (query: Record<string, string | number>) =>
    expectOk(
      await api.request<{ items: Array<{ id: string }>; next_cursor: string }>('GET', at('/inbox'), {
        query,
      }),
    )
})

describe('work', () => {
  it('is claimed by one of many, with its due input, and again when the lease is released', async () => {
    const agent = randomUUID()
    const sessions: string[] = []
    for (const n of [0, 1, 2, 3, 4, 5]) {
      const { id } = expectOk(await api.createSession({ configs: { agent } }), 201)
      sessions.push(id)
      expectOk(await send({ data: { n } }, id), 201)
      expectOk(await send({ not_before: '2999-01-01T00:00:00Z' }, id), 201)
    }
    const filter_by_configs = { agent }
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, n) => claim(`w${n}`, { filter_by_configs }, n % 2 ? api : second)),
    )
    const items = claims.flatMap((answer) => expectOk(answer).items)
    expect(items.map(({ session_id }) => session_id).sort()).toEqual(sessions.sort())
    expect(items.map(({ inputs }) => inputs.length)).toEqual([1, 1, 1, 1, 1, 1])
    const one = items[0]!
    const waiting = claim('late', { filter_by_configs, wait_ms: 20_000 }, second)
    expectOk(await api.request('DELETE', at('/lease', one.session_id), { query: { fence: one.fence } }))
    expect(expectOk(await waiting).items).toMatchObject([{ session_id: one.session_id, owner: 'late' }])
    expect(expectOk(await claim('none', { filter_by_configs })).items).toEqual([])
    const runs = await api.request<{ items: Array<{ session_id: string }> }>('GET', '/api/v1/runs', {
      query: { state: 'running', filter_by_configs: JSON.stringify({ agent }) },
    })
    expect(
      expectOk(runs)
        .items.map(({ session_id }) => session_id)
        .sort(),
    ).toEqual(sessions)
  })

  it('that becomes due is claimed by a caller who waits', async () => {
    const agent = randomUUID()
    const { id } = expectOk(await api.createSession({ configs: { agent } }), 201)
    expectOk(await send({ not_before: new Date(Date.now() + 1_500).toISOString() }, id), 201)
    const { items } = expectOk(await claim('w', { filter_by_configs: { agent }, wait_ms: 25_000 }))
    expect(items.map(({ session_id }) => session_id)).toEqual([id])
  })
})

describe('a request', () => {
  const call = { name: 'refund', arguments: { amount: 12.5, Ü: [1, null], a: 'x' } }
  const digest = createHash('sha256')
    .update('{"arguments":{"a":"x","amount":12.5,"Ü":[1,null]},"name":"refund"}')
    .digest('hex')

  it('is in the log, is answered once, and only for the call that was asked for', async () => {
    const id = randomUUID()
    const asked = expectOk(await open({ id, call, text: 'Refund?' }), 201)
    expect(asked).toMatchObject({ id, seq: 1, state: 'open', call, call_sha256: digest })
    expect(expectOk(await open({ id, call, text: 'Refund?' }), 201)).toEqual(asked)
    expectError(await open({ id, call, text: 'Other?' }), 422, 'idempotency_key_reused')
    expect(await run()).toMatchObject({ state: 'waiting', open_requests: 1 })
    expectError(await resolve(id, { decision: 'approve' }), 400, 'invalid_request', '/call_sha256', digest)
    expectError(
      await resolve(id, { decision: 'approve', call_sha256: 'f'.repeat(64) }),
      400,
      'invalid_request',
    )
    expectError(await resolve(id, { decision: 'answer', answer: 1 }), 400, 'invalid_request', '/decision')
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        resolve(id, { decision: 'approve', by: `p${n}`, call_sha256: digest }, n % 2 ? api : second),
      ),
    )
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    const { by } = expectOk(won[0]!) as unknown as { by: string }
    for (const lost of answers.filter(({ status }) => status !== 200))
      expectError(lost, 409, 'resolved', 'approve', `"${by}"`)
    const { items } = expectOk(await api.listEvents(session))
    expect(items.map(({ type }) => type)).toEqual(['annals.request', 'annals.resolution'])
    expect(items[1]!.data).toMatchObject({ request_id: id, request_seq: 1, decision: 'approve', by })
    expect(await run()).toMatchObject({ state: 'idle', open_requests: 0 })
  })

  it('of several is answered with all the others or not at all', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => expectOk(await open({}), 201).id))
    const resolutions = ids.map((request_id) => ({ request_id, decision: 'deny' }))
    const all = (body: object) => api.request('POST', '/api/v1/requests/resolve', { body })
    expectError(
      await all({ resolutions: [...resolutions, { request_id: NOBODYS_ID, decision: 'deny' }] }),
      404,
      'request_not_found',
      '/resolutions/3',
    )
    expect(expectOk(await all({ resolutions }))).toMatchObject({
      items: ids.map((id) => ({ id, decision: 'deny' })),
    })
    expectError(await all({ resolutions }), 409, 'resolved', '/resolutions/0')
  })

  it('is answered again to whoever sends the same answer under its id, and refuses another one under it', async () => {
    const [one, two] = [expectOk(await open({}), 201).id, expectOk(await open({}), 201).id]
    const id = randomUUID()
    const first = expectOk(await resolve(one, { id, decision: 'deny', by: 'ada' }))
    const again = await Promise.all(
      [api, second].map((at) => resolve(one, { id, decision: 'deny', by: 'ada' }, at)),
    )
    expect(again.map((answer) => expectOk(answer))).toEqual([first, first])
    const reused = [422, 'idempotency_key_reused', '/id'] as const
    expectError(await resolve(one, { id, decision: 'approve', by: 'ada' }), ...reused)
    expectError(await resolve(two, { id, decision: 'deny', by: 'ada' }), ...reused)
    expectError(await resolve(one, { decision: 'deny', by: 'ada' }), 409, 'resolved')
    const path = '/api/v1/requests/resolve'
    const all = (...resolutions: object[]) => api.request('POST', path, { body: { resolutions } })
    const known = { request_id: one, id, decision: 'deny', by: 'ada' }
    const other = { request_id: two, decision: 'deny' }
    expectError(await all(known, { ...other, id }), 400, 'invalid_request', '/resolutions/1/id')
    const both = { items: [first, { id: two, state: 'resolved' }] }
    expect(expectOk(await all(known, other))).toMatchObject(both)
    const { items } = expectOk(await api.listEvents(session))
    const resolutions = items.filter(({ type }) => type === 'annals.resolution')
    expect(resolutions.map((event) => event.id)).toEqual([id, expect.any(String)])
  })

  it('counts as an entry in the usage of the day, and so does each answer of several', async () => {
    const own = await service.newClient()
    const { id } = expectOk(await own.createSession({}), 201)
    const ask = () =>
      own.request<{ id: string }>('POST', `/api/v1/session/${id}/requests`, { body: { kind: 'approval' } })
    const ids = [expectOk(await ask(), 201).id, expectOk(await ask(), 201).id]
    const resolutions = ids.map((request_id) => ({ request_id, decision: 'deny' }))
    expectOk(await own.request('POST', '/api/v1/requests/resolve', { body: { resolutions } }))
    const counted = async () => {
      const usage = await own.request<{ days: Array<{ entries: number }> }>('GET', '/api/v1/usage')
      return expectOk(usage).days.reduce((sum, { entries }) => sum + entries, 0)
    }
    await expect.poll(counted).toBe(4)
  })

  it('is listed across sessions by cursor, and expires', async () => {
    const ids: string[] = []
    for (const _three of [1, 2, 3])
      ids.push(expectOk(await open({ kind: 'question', options: ['a'] }), 201).id)
    const gone = expectOk(await open({ expires_at: '2020-01-01T00:00:00Z' }), 201)
    expectError(await resolve(gone.id, { decision: 'deny' }), 409, 'resolved', 'expired')
    const seen: string[] = []
    for (let cursor: string | undefined; cursor !== ''; ) {
      const page: { items: Asked[]; next_cursor: string } = expectOk(
        await api.request('GET', '/api/v1/requests', { query: { session_id: session, limit: 2, cursor } }),
      )
      seen.push(...page.items.map(({ id }) => id))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(ids)
    expect(
      expectOk(
        await api.request('GET', '/api/v1/requests', { query: { state: 'expired', session_id: session } }),
      ),
    ).toMatchObject({
      items: [{ id: gone.id, state: 'expired' }],
    })
    const asked = expectOk(await resolve(ids[0]!, { decision: 'answer', answer: { x: 1 } }))
    expect(asked).toMatchObject({ state: 'resolved', answer: { x: 1 } })
    expect(
      expectOk(
        await api.request('GET', '/api/v1/requests', {
          query: { state: 'resolved', time_desc: true, session_id: session },
        }),
      ),
    ).toMatchObject({
      items: [{ id: ids[0] }],
    })
  })

  it.each([
    ['/call', { kind: 'question', call: { name: 'x', arguments: {} } }, 'approval'],
    ['/call/name', { call: { arguments: {} } }, 'required'],
  ])('names what is wrong: %s', async (place, body, word) => {
    expectError(await open(body), 400, 'invalid_request', place, word)
  })

  it('is on some page, however much those before it take', async () => {
    const call = { name: 'write', arguments: 'a'.repeat(60_000) }
    const ids: string[] = []
    for (let n = 0; n < 20; n += 1) ids.push(expectOk(await open({ call }), 201).id)
    const found: string[] = []
    for (let cursor = ''; ; ) {
      const query = { session_id: session, limit: 200, ...(cursor && { cursor }) }
      const page = expectOk(await api.request('GET', '/api/v1/requests', { query })) as Page
      found.push(...page.items.map(({ id }) => id))
      cursor = page.next_cursor
      expect(cursor !== '').toBe(page.has_more)
      if (!page.has_more) break
    }
    expect(found).toEqual(ids)
  })

  it('has no number in its call that two calls could share a digest by', async () => {
    const text = (n: string) => `{"kind":"approval","call":{"name":"x","arguments":{"n":[${n}]}}}`
    const opened = (n: string) =>
      api.request('POST', at('/requests'), {
        rawBody: text(n),
        headers: { 'content-type': 'application/json' },
      })
    for (const n of ['1152921504606846977', '0.12345678901234567890'])
      expectError(await opened(n), 400, 'invalid_request', '/call', n)
    for (const n of ['9007199254740991', '0.5', '1e300']) expectOk(await opened(n), 201)
  })
})

describe('the client', () => {
  it('hears of input, requests and leases, and goes on after a frame that it has seen', async () => {
    const end = new AbortController()
    const heard: Array<{ place: number; event: string; data: { state: string } }> = []
    const annals = new Annals({ url: service.secondNode.url, token })
    const follow = async (after: number, until: number) => {
      for await (const frame of annals.runs.follow(session, { after, signal: end.signal })) {
        heard.push(frame)
        if (heard.length === until) return
      }
    }
    const first = follow(0, 4)
    const { fence } = expectOk(await take('a', { ttl_ms: 1_000 }))
    expectOk(await send({ mode: 'interrupt' }), 201)
    expectOk(await open({}), 201)
    await first
    const kinds = () => heard.map(({ event, data }) => `${event} ${data.state}`)
    expect(kinds()).toEqual(['lease taken', 'input pending', 'request open', 'lease expired'])
    expectOk(await api.request('DELETE', at('/lease'), { query: { fence } }))
    await follow(heard[2]!.place, 5)
    expect(kinds().at(-1)).toBe('lease released')
    end.abort()
  })

  it('hears at once that its lease was stolen, and that nobody has work when the session is gone', async () => {
    const agent = randomUUID()
    const { id } = expectOk(await api.createSession({ configs: { agent } }), 201)
    const { fence } = expectOk(await take('a', {}, api))
    const annals = new Annals({ url: service.secondNode.url, token })
    const stolen = (async () => {
      for await (const { event, data } of annals.runs.follow(session))
        if (event === 'lease' && data.fence !== fence) return data
    })()
    const admin = await service.newClient({ token: (await adminKey()).token })
    const taken = expectOk(await take('b', { steal: true }, admin))
    expect(await stolen).toMatchObject({ state: 'taken', owner: 'b', fence: taken.fence })
    expectOk(await send({ not_before: new Date(Date.now() + 1_000).toISOString() }, id), 201)
    const waiting = claim('w', { filter_by_configs: { agent }, wait_ms: 2_000 }, second)
    expectOk(await api.deleteSession(id))
    expect(expectOk(await waiting).items).toEqual([])
  })

  it('stops work whose lease was lost, and releases one that it still holds', async () => {
    const annals = new Annals({ url: service.node.url, token })
    const lost = annals.runs.withLease(session, { owner: 'a', ttl_ms: 9_000 }, async ({ signal }) => {
      expectOk(await take('a'))
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return (signal.reason as { error: string }).error
    })
    expect(await lost).toBe('fenced')
    await annals.runs.withLease(session, { owner: 'a', ttl_ms: 9_000 }, () => Promise.resolve())
    expect(await run()).toMatchObject({ state: 'idle' })
    expect(expectOk(await take('b')).owner).toBe('b')
  })
})

describe('what belongs to another project', () => {
  it('does not exist', async () => {
    const { fence } = expectOk(await take('a'))
    const { id } = expectOk(await open({}), 201)
    const input = randomUUID()
    expectOk(await send({ id: input }), 201)
    const none = [
      ['POST', at('/lease'), { body: { owner: 'x', ttl_ms: 1_000, wait_ms: 10_000 } }],
      ['PUT', at('/lease'), { body: { fence, ttl_ms: 1_000 } }],
      ['DELETE', at('/lease'), { query: { fence } }],
      ['POST', at('/inbox'), { body: { mode: 'queue', kind: 'event', type: 'x', data: {} } }],
      ['GET', at('/inbox'), {}],
      ['GET', at('/inbox'), { headers: { accept: 'text/event-stream' } }],
      ['DELETE', at(`/inbox/${input}`), {}],
      ['POST', at('/requests'), { body: { kind: 'approval' } }],
      ['POST', `/api/v1/requests/${id}/resolve`, { body: { decision: 'approve' } }],
      ['GET', `/api/v1/requests/${id}`, {}],
    ] as const
    for (const [method, path, options] of none) {
      const error = path.includes('/api/v1/requests/') ? 'request_not_found' : 'session_not_found'
      expectError(await stranger.request(method, path, options), 404, error)
    }
    for (const path of [
      '/api/v1/requests',
      '/api/v1/runs?state=running',
      '/api/v1/runs?state=queued',
      '/api/v1/runs?state=waiting',
    ])
      expect(expectOk(await stranger.request('GET', path))).toEqual({
        items: [],
        has_more: false,
        next_cursor: '',
      })
    expect(expectOk(await claim('x', {}, stranger)).items).toEqual([])
    expect(UUID.test(id)).toBe(true)
  })
})
