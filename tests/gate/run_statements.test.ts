import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { type DatabaseProxy, proxyDatabase } from '../harness/database_proxy.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'

/** More often than background work comes meanwhile. */
const TIMES = 30

const service = useService()
let api: ApiClient
let proxy: DatabaseProxy

beforeAll(async () => {
  proxy = await proxyDatabase(service.databaseUrl)
  const node = await service.startNode({ DATABASE_URL: proxy.url })
  const { token } = await service.newProject()
  api = await service.newClient({ token, node })
})
afterAll(() => proxy.close())

/** A session, with what the operations need. */
type Prepared = { at: string; fence: number; input: string; request: string }

async function prepared(): Promise<Prepared> {
  const { id } = expectOk(await api.createSession({}), 201)
  const at = `/api/v1/session/${id}`
  const ask = async <Data>(method: string, path: string, body: object, status = 200) =>
    expectOk(await api.request<Data>(method, `${at}${path}`, { body }), status)
  const { fence } = await ask<{ fence: number }>('POST', '/lease', { owner: 'a', ttl_ms: 60_000 })
  const sent = { mode: 'queue', kind: 'event', type: 'go', data: {} }
  const input = await ask<{ id: string }>('POST', '/inbox', sent, 201)
  const request = await ask<{ id: string }>('POST', '/requests', { kind: 'question' }, 201)
  return { at, fence, input: input.id, request: request.id }
}

/** Each is one statement, which asks one shard: see tests/database/cluster_writes.test.ts. */
it.each<[string, string[], (one: Prepared) => Promise<Answer<unknown>>]>([
  [
    'a lease',
    ['change_lease'],
    ({ at }) => api.request('POST', `${at}/lease`, { body: { owner: 'a', ttl_ms: 60_000 } }),
  ],
  [
    'a renewal',
    ['change_lease'],
    ({ at, fence }) => api.request('PUT', `${at}/lease`, { body: { fence, ttl_ms: 60_000 } }),
  ],
  [
    'a release',
    ['change_lease'],
    ({ at, fence }) => api.request('DELETE', `${at}/lease`, { query: { fence } }),
  ],
  [
    'an append with a fence',
    ['append_entries'],
    ({ at, fence }) => {
      const headers = { 'Annals-Fence': String(fence) }
      return api.request('POST', `${at}/events`, { body: { type: 'step', data: {} }, headers })
    },
  ],
  [
    'an append that applies input, which it reads first,',
    ['read_inputs', 'append_entries'],
    ({ at, fence, input }) => {
      const headers = { 'Annals-Fence': String(fence) }
      return api.request('POST', `${at}/entries`, { body: { apply: [input] }, headers })
    },
  ],
  [
    'an answer to a request',
    ['resolve_requests'],
    ({ request }) => {
      const body = { decision: 'answer', answer: 'yes' }
      return api.request('POST', `/api/v1/requests/${request}/resolve`, { body })
    },
  ],
  [
    'a claim',
    ['claim_work'],
    ({ at }) => api.request('POST', '/api/v1/work/claim', { body: { owner: at, ttl_ms: 60_000 } }),
  ],
])('%s takes the statements %j, whatever the session', async (name, statements, call) => {
  const sessions: Prepared[] = []
  for (let n = 0; n <= TIMES; n++) sessions.push(await prepared())
  if (name === 'a claim')
    for (const { at, fence } of sessions)
      expectOk(await api.request('DELETE', `${at}/lease`, { query: { fence } }))
  // The first call also looks up the key.
  const [first, ...others] = sessions
  expect((await call(first!)).status).toBeLessThan(300)
  proxy.executed.length = 0
  for (const one of others) expect((await call(one)).status).toBeLessThan(300)
  const often = proxy.executed.filter(
    (one, at, all) => all.indexOf(one) === at && all.filter((other) => other === one).length >= TIMES,
  )
  expect(often).toEqual(statements)
  expect(proxy.executed.filter((one) => statements.includes(one))).toHaveLength(TIMES * statements.length)
})
