import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, expectOrderlyEnds, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { type ClusterDatabase, createClusterDatabase } from '../harness/cluster_database.ts'
import { type DatabaseProxy, proxyDatabase } from '../harness/database_proxy.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Answer, httpClient } from '../harness/http_client.ts'
import { createProject } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/*
 * What the operations of runs take of the database. On one PostgreSQL, a proxy counts their statements; on a cluster, a proxy
 * before each machine does, and Citus counts how many shards each machine asked.
 */

const isCluster = inject('testServer').mode === 'shared'
/** More often than background work comes meanwhile, all of it together on a cluster. */
const TIMES = isCluster ? 60 : 30
/** Before each machine; the coordinator's first. */
const proxies: DatabaseProxy[] = []
let cluster: ClusterDatabase | undefined
let database: TestDatabase | undefined
let node: AnnalsServer | undefined
let api: ApiClient
let project: string

async function through(url: string): Promise<string> {
  proxies.push(await proxyDatabase(url))
  return proxies.at(-1)!.url
}

beforeAll(async () => {
  const settings = { 'citus.enable_stat_counters': 'on' }
  if (isCluster) database = cluster = await createClusterDatabase({ settings, through })
  else database = await createTestDatabase()
  if (!database) return
  node = await startServer({ DATABASE_URL: cluster?.url ?? (await through(database.url)) })
  const { id, token } = await createProject(httpClient(node.url, ADMIN_TOKEN))
  project = id
  api = apiClient(node.url, token)
})
afterAll(async () => {
  api?.close()
  if (node) expectOrderlyEnds([await node.stop()])
  for (const proxy of proxies) await proxy.close()
  await database?.drop()
})

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

/** Which machine has the project: on a cluster a worker. */
async function ownMachine(): Promise<number> {
  const worker = await cluster?.workerOf(project)
  return worker === undefined ? 0 : proxies.findIndex(({ url }) => new URL(url).host === worker)
}

/**
 * How many statements each machine has executed that ask one shard, and how many that ask several. Those of a stored function
 * count, but for those that name the shard themselves.
 */
async function shardsAsked(): Promise<Array<{ one: number; several: number }>> {
  const counted = `SELECT query_execution_single_shard::int AS one, query_execution_multi_shard::int AS several
    FROM citus_stat_counters WHERE name = current_database()`
  const rows = await Promise.all(cluster!.machines.map((url) => queryRows(url, counted)))
  return rows.map(([row]) => row as { one: number; several: number })
}

/** What is executed meanwhile: that asks several shards, and that asks one, on machines without the project and on its own. */
async function whileAsked(action: () => Promise<void>) {
  const before = await shardsAsked()
  await action()
  const since = (await shardsAsked()).map(({ one, several }, machine) => {
    return { one: one - before[machine]!.one, several: several - before[machine]!.several }
  })
  const own = await ownMachine()
  const several = since.reduce((sum, machine) => sum + machine.several, 0)
  const elsewhere = since.reduce((sum, { one }, machine) => sum + (machine === own ? 0 : one), 0)
  return { several, elsewhere, own: since[own]!.one }
}

/** What it is, the statements that it sends, how many Citus executes for them, and the call. */
it.for<[string, string[], number, (one: Prepared) => Promise<Answer<unknown>>]>([
  [
    'a lease',
    ['change_lease'],
    4,
    ({ at }) => api.request('POST', `${at}/lease`, { body: { owner: 'a', ttl_ms: 60_000 } }),
  ],
  [
    'a renewal',
    ['change_lease'],
    3,
    ({ at, fence }) => api.request('PUT', `${at}/lease`, { body: { fence, ttl_ms: 60_000 } }),
  ],
  [
    'a release',
    ['change_lease'],
    4,
    ({ at, fence }) => api.request('DELETE', `${at}/lease`, { query: { fence } }),
  ],
  [
    'an append with a fence',
    ['append_entries'],
    0,
    ({ at, fence }) => {
      const headers = { 'Annals-Fence': String(fence) }
      return api.request('POST', `${at}/events`, { body: { type: 'step', data: {} }, headers })
    },
  ],
  [
    'an append that applies input',
    ['append_entries'],
    5,
    ({ at, fence, input }) => {
      const headers = { 'Annals-Fence': String(fence) }
      return api.request('POST', `${at}/entries`, { body: { apply: [input] }, headers })
    },
  ],
  [
    'an answer to a request',
    ['resolve_requests'],
    8,
    ({ request }) => {
      const body = { decision: 'answer', answer: 'yes' }
      return api.request('POST', `/api/v1/requests/${request}/resolve`, { body })
    },
  ],
  [
    'a claim',
    ['claim_work'],
    6,
    ({ at }) => api.request('POST', '/api/v1/work/claim', { body: { owner: at, ttl_ms: 60_000 } }),
  ],
])(
  '%s takes the statements %j, whatever the session, each of which asks one shard of a cluster',
  async ([name, statements, executions, call], context) => {
    context.skip(!database, 'it takes a superuser to make a database')
    const sessions: Prepared[] = []
    for (let n = 0; n <= TIMES; n++) sessions.push(await prepared())
    if (name === 'a claim')
      for (const { at, fence } of sessions)
        expectOk(await api.request('DELETE', `${at}/lease`, { query: { fence } }))
    // The first call also looks up the key.
    const [first, ...others] = sessions
    expect((await call(first!)).status).toBeLessThan(300)
    for (const { executed } of proxies) executed.length = 0
    const callAll = async () => {
      for (const one of others) expect((await call(one)).status).toBeLessThan(300)
    }
    if (cluster) {
      const shards = await whileAsked(callAll)
      expect(shards.several).toBe(0)
      expect(shards.elsewhere).toBeLessThan(TIMES)
      expect(Math.round(shards.own / TIMES)).toBe(executions)
    } else await callAll()
    const executed = proxies.flatMap((proxy) => proxy.executed)
    const atOwn = proxies[await ownMachine()]!.executed.filter((one) => statements.includes(one))
    // Now and then, a node asks the coordinator again where the project is, and sends a statement through it meanwhile.
    expect(atOwn.length).toBeGreaterThan((TIMES / 2) * statements.length)
    const often = executed.filter(
      (one, at, all) => all.indexOf(one) === at && all.filter((other) => other === one).length >= TIMES,
    )
    expect(often).toEqual(statements)
    expect(executed.filter((one) => statements.includes(one))).toHaveLength(TIMES * statements.length)
  },
)

it('input for which many wait is claimed at once, for a few statements and not one for each who waits', async (context) => {
  context.skip(!database, 'it takes a superuser to make a database')
  const { token } = await createProject(httpClient(node!.url, ADMIN_TOKEN))
  const own = apiClient(node!.url, token)
  const waits = (n: number) => {
    const body = { owner: `w${n}`, ttl_ms: 60_000, wait_ms: 30_000 }
    return own.request<{ items: object[] }>('POST', '/api/v1/work/claim', { body })
  }
  const claims = () =>
    proxies.flatMap(({ executed }) => executed).filter((one) => one === 'claim_work').length
  const waiting = Array.from({ length: 80 }, (_, n) => waits(n))
  // Each tries when it comes, and when it begins to wait.
  await vi.waitFor(() => expect(claims()).toBeGreaterThan(80), { timeout: 30_000 })
  for (const { executed } of proxies) executed.length = 0
  let answered = 0
  for (const one of waiting)
    void one.then(
      ({ json }) => {
        answered += json.data.items.length
      },
      () => {}, // Ended by the test.
    )
  for (let sent = 1; sent <= 10; sent += 1) {
    const { id } = expectOk(await own.createSession({}), 201)
    const input = { mode: 'queue', kind: 'event', type: 'go', data: {} }
    expectOk(await own.request('POST', `/api/v1/session/${id}/inbox`, { body: input }), 201)
    await vi.waitFor(() => expect(answered).toBe(sent), { timeout: 10_000 })
  }
  // Those who wait also try now and then by themselves.
  expect(claims()).toBeLessThan(200)
  own.close()
  await Promise.allSettled(waiting)
})

it('a lease for which many wait goes from one to the next for a few statements and not one for each who waits', async (context) => {
  context.skip(!database, 'it takes a superuser to make a database')
  const { id } = expectOk(await api.createSession({}), 201)
  const at = `/api/v1/session/${id}/lease`
  const take = async (owner: string, wait_ms: number) => {
    const body = { owner, ttl_ms: 60_000, wait_ms }
    return expectOk(await api.request<{ fence: number }>('POST', at, { body })).fence
  }
  const release = async (fence: number) => expectOk(await api.request('DELETE', at, { query: { fence } }))
  const changes = () =>
    proxies.flatMap(({ executed }) => executed).filter((one) => one === 'change_lease').length
  const first = await take('first', 0)
  const before = changes()
  const turns = Array.from({ length: 60 }, async (_, n) => release(await take(`w${n}`, 30_000)))
  // Each tries when it comes, and when it begins to wait.
  await vi.waitFor(() => expect(changes()).toBeGreaterThan(before + 60), { timeout: 30_000 })
  for (const { executed } of proxies) executed.length = 0
  await release(first)
  await Promise.all(turns)
  expect(changes()).toBeLessThan(6 * turns.length)
})

describe.skipIf(!isCluster)('on a cluster, which TEST_DATABASE_URL names', () => {
  it('it would be noticed if a worker asked several shards, or another machine asked one', async (context) => {
    if (!cluster) return context.skip('it takes a superuser to make a database')
    const { machines } = cluster
    const heads = 'SELECT count(*) FROM session_heads'
    const seen = await whileAsked(async () => {
      await queryRows(machines[await ownMachine()]!, heads)
      await queryRows(machines[0]!, `${heads} WHERE project_id = $1`, [project])
    })
    expect(seen.several).toBeGreaterThan(0)
    expect(seen.elsewhere).toBeGreaterThan(0)
  })
})
