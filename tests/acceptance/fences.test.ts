import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let api: ApiClient
let second: ApiClient
let session: string

beforeAll(async () => {
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  second = await service.newClient({ token: project.token, node: service.secondNode })
})

beforeEach(async () => {
  session = expectOk(await api.createSession({}), 201).id
})

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
const open = (body: object, client = api): Promise<Answer<Asked>> =>
  client.request('POST', at('/requests'), { body: { kind: 'approval', ...body } })
interface Asked {
  id: string
  seq: number
  state: string
  call_sha256: string
  decision?: string
}

const under = (fence: number | string) => ({ headers: { 'Annals-Fence': String(fence) } })
const event = (n: number) => ({ type: 'step', data: { n } })
const batch = (body: object, more: object = {}) =>
  api.request<{ items: Array<{ id: string; type: string; data: unknown; seq: number }> }>(
    'POST',
    at('/entries'),
    { body, ...more },
  )

describe('a write with Annals-Fence', () => {
  it('is refused from the moment on that somebody else has the lease, in every way to write', async () => {
    const old = expectOk(await take('a')).fence
    const message = { blob: { role: 'user', content: 'late' } }
    const { id } = expectOk(
      await api.request<{ id: string }>('POST', at('/messages'), { body: message, ...under(old) }),
      201,
    )
    const { fence } = expectOk(await take('a'))
    const late: Array<[string, string, object]> = [
      ['POST', at('/events'), event(2)],
      ['POST', at('/messages'), message],
      ['POST', at('/entries'), { entries: [{ kind: 'event', ...event(2) }] }],
      ['POST', at('/retractions'), { last: 1 }],
      ['POST', at('/compactions'), { to_seq: 1, summary: message }],
      ['PUT', at('/configs'), { configs: { late: 1 } }],
      ['PATCH', at('/configs'), { configs: { late: 1 } }],
      ['PATCH', at(`/messages/${id}/meta`), { meta: { late: 1 } }],
      ['POST', at('/requests'), { kind: 'approval' }],
      ['POST', at('/inbox'), { mode: 'queue', kind: 'event', ...event(2) }],
      [
        'POST',
        '/api/v1/entries',
        { appends: [{ session_id: session, entries: [{ kind: 'event', ...event(2) }] }] },
      ],
    ]
    for (const [method, path, body] of late) {
      const answer = await api.request(method, path, { body, ...under(old) })
      expectError(answer, 409, 'fenced', String(fence), String(old))
    }
    expect(expectOk(await api.listEvents(session)).items).toEqual([])
    for (const [method, path, body] of late) {
      const answer = await api.request(method, path, { body, ...under(fence) })
      expect(answer.status, `${path} ${answer.text}`).toBeLessThan(300)
    }
    expectError(await api.appendEvent(session, event(3), under('x')), 400, 'invalid_request', 'Annals-Fence')
    expectError(await api.appendEvent(NOBODYS_ID, event(3), under(1)), 404, 'session_not_found')
  })

  it('is one run of writes for each fence, however many take the lease and write beside each other', async () => {
    const runner = async (n: number) => {
      const taken = () => take(`r${n}`, { ttl_ms: 1_000, wait_ms: 30_000 }, n % 2 ? api : second)
      let answer = await taken()
      // On a busy machine, as many as are ahead may take longer.
      while (answer.status === 409) answer = await taken()
      const { fence } = expectOk(answer)
      const client = n % 2 ? second : api
      // Most of these come late: the next one takes the lease as soon as it is released.
      const writes = Array.from({ length: 5 }, () =>
        client.request('POST', at('/events'), { body: { type: 'step', data: { fence } }, ...under(fence) }),
      )
      expectOk(await api.request('DELETE', at('/lease'), { query: { fence } }))
      for (const answer of await Promise.all(writes))
        if (answer.status !== 200) expectError(answer, 409, 'fenced')
    }
    await Promise.all(Array.from({ length: 64 }, (_, n) => runner(n)))
    const { items } = expectOk(await api.listEvents(session, { limit: 1_000 }))
    const fences = items.map(({ data }) => Number(data.fence))
    expect(fences.length).toBeGreaterThan(0)
    expect(fences).toEqual([...fences].sort((a, b) => a - b))
  })

  it('is accepted after the end of the lease, until somebody else has taken it', async () => {
    const { fence } = expectOk(await take('a', { ttl_ms: 1_000 }))
    await vi.waitFor(async () => expect(await run()).toMatchObject({ state: 'idle' }), { timeout: 10_000 })
    expectOk(await api.appendEvent(session, event(1), under(fence)))
    const renewed = await api.request<Lease>('PUT', at('/lease'), { body: { fence, ttl_ms: 1_000 } })
    expect(expectOk(renewed).fence).toBe(fence)
    expectOk(await take('b', { wait_ms: 30_000 }))
    expectError(await api.appendEvent(session, event(2), under(fence)), 409, 'fenced')
  })

  it('is what a lease may require, until it is released', async () => {
    const { fence } = expectOk(await take('a', { requires_fence: true }))
    const message = { blob: { role: 'user', content: 'x' } }
    expectError(await api.appendEvent(session, event(1)), 409, 'fenced', 'Annals-Fence')
    expectError(await api.request('POST', at('/messages'), { body: message }), 409, 'fenced')
    expectError(await api.request('PATCH', at('/configs'), { body: { configs: {} } }), 409, 'fenced')
    expectError(await open({}), 409, 'fenced')
    expectOk(await api.appendEvent(session, event(1), under(fence)))
    expectOk(await send({}), 201)
    expectOk(await api.request('DELETE', at('/lease'), { query: { fence } }))
    expectOk(await api.appendEvent(session, event(2)))
  })

  it('prolongs a lease with progress', async () => {
    const { fence, expires_at } = expectOk(await take('a', { ttl_ms: 2_000, progress: true }))
    expectOk(await api.appendEvent(session, event(1), under(fence)))
    const renewed = await api.request<Lease>('PUT', at('/lease'), { body: { fence, ttl_ms: 2_000 } })
    expect(expectOk(renewed).expires_at > expires_at).toBe(true)
  })
})

describe('input that is applied', () => {
  const ids = async (count: number) => {
    const sent: string[] = []
    for (let n = 0; n < count; n++)
      sent.push(expectOk<{ id: string }>((await send({ data: { n } })) as Answer<{ id: string }>, 201).id)
    return sent
  }

  it('becomes entries in the same commit, before the others and under its own ids', async () => {
    const [a, b, c] = await ids(3)
    const { items } = expectOk(await batch({ apply: [a, b], entries: [{ kind: 'event', ...event(9) }] }), 201)
    expect(items.map(({ id, seq }) => [id, seq]).slice(0, 2)).toEqual([
      [a, 1],
      [b, 2],
    ])
    expect(items.map(({ data }) => data)).toEqual([{ n: 0 }, { n: 1 }, { n: 9 }])
    const nothing = await batch({ apply: [c, b], entries: [{ kind: 'event', ...event(9) }] })
    expectError(nothing, 409, 'not_pending', b!, 'entry 2')
    expectError(await batch({ apply: [NOBODYS_ID] }), 409, 'not_pending')
    expect(expectOk(await api.listEvents(session)).items).toHaveLength(3)
    expect(await run()).toMatchObject({ pending: 1, state: 'queued' })
    expectOk(await batch({ apply: [c] }), 201)
    expect(await run()).toMatchObject({ pending: 0, state: 'idle' })
    expect(expectOk(await send({ id: a, data: { n: 0 } }), 201)).toMatchObject({ state: 'applied', seq: 1 })
    expectError(await api.request('DELETE', at(`/inbox/${a}`)), 409, 'not_pending')
    expectError(await batch({}), 400, 'invalid_request', '/entries')
    expectError(await batch({ apply: [a, a] }), 400, 'invalid_request', '/apply')
  })

  it('is in the log once, whoever applies it at the same time, and a retry with a key is answered', async () => {
    const [a] = await ids(1)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        (n % 2 ? api : second).request('POST', at('/entries'), {
          body: { apply: [a], entries: [{ kind: 'event', ...event(n) }] },
        }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 409, 'not_pending')
    expect(expectOk(await api.listEvents(session)).items).toHaveLength(2)
    const [b] = await ids(1)
    const key = { headers: { 'Idempotency-Key': randomUUID() } }
    const first = await batch({ apply: [b] }, key)
    expectOk(first, 201)
    const again = await batch({ apply: [b] }, key)
    expect([again.text, again.headers['idempotent-replayed']]).toEqual([first.text, 'true'])
    expectError(
      await batch({ apply: [b] }, { headers: { 'Idempotency-Key': randomUUID() } }),
      409,
      'not_pending',
    )
  })

  it('of several sessions is applied in all or in none', async () => {
    const other = expectOk(await api.createSession({}), 201).id
    const [a] = await ids(1)
    const { id: b } = expectOk((await send({}, other)) as Answer<{ id: string }>, 201)
    const all = (appends: object[]) => api.request('POST', '/api/v1/entries', { body: { appends } })
    expectError(
      await all([
        { session_id: session, apply: [a] },
        { session_id: other, apply: [b], fence: 7 },
      ]),
      409,
      'fenced',
      '/appends/1',
    )
    expect(expectOk(await api.listEvents(session)).items).toEqual([])
    expectOk(
      await all([
        { session_id: session, apply: [a] },
        { session_id: other, apply: [b] },
      ]),
      201,
    )
    expect(expectOk(await api.listEvents(other)).items).toMatchObject([{ id: b }])
  })
})
