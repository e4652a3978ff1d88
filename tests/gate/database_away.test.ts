import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { startServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { type DatabaseProxy, proxyDatabase } from '../harness/database_proxy.ts'
import { databaseNameOf } from '../harness/database_url.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useService } from '../harness/service.ts'
import { execute, withConnection } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const WAIT = { ANNALS_DATABASE_WAIT_MS_MAX: '1500' }

const service = useService(WAIT)
const event = { type: 'note', data: {} }
let proxy: DatabaseProxy
let api: ApiClient
let sessionId: string

beforeEach(async () => {
  proxy = await proxyDatabase(service.databaseUrl)
  const node = await service.startNode({ DATABASE_URL: proxy.url })
  api = await service.newClient({ node })
  sessionId = expectOk(await api.createSession({}), 201).id
})

afterEach(() => proxy.close())

/** Every operation that needs the database says so, with the time to wait; the process itself is well. */
async function expectUnavailable(): Promise<void> {
  const calls = [
    () => api.appendEvent(sessionId, event),
    () => api.getSession(sessionId),
    () => api.createSession({}),
    () => api.listSessions(),
  ]
  for (const answer of await Promise.all(calls.map((call) => call()))) {
    expectError(answer, 503, 'unavailable')
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
  }
  expect((await api.request('GET', '/health')).status).toBe(200)
  expect((await api.request('GET', '/ready')).status).toBe(503)
}

/** The node serves again without a restart, and nothing that was refused had been stored. */
async function expectRecovered(): Promise<void> {
  await vi.waitFor(async () => expect((await api.request('GET', '/ready')).status).toBe(200), {
    timeout: 15_000,
  })
  expectOk(await api.appendEvent(sessionId, event))
  expect(expectOk(await api.listEvents(sessionId)).items.map((item) => item.seq)).toEqual([1])
  expect(expectOk(await api.listSessions()).items).toHaveLength(1)
}

describe('a database that is away', () => {
  it('is 503 unavailable with Retry-After, and the node recovers by itself', async () => {
    await proxy.refuse()
    await expectUnavailable()
    await proxy.comeBack()
    await expectRecovered()
  })

  it.skipIf(reasonForNoOwnDatabase())('is the same when it is there and lets nobody in', async () => {
    const { serverUrl } = inject('testServer')
    const name = databaseNameOf(service.databaseUrl)
    await execute(serverUrl, `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
    try {
      await execute(serverUrl, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
        name,
      ])
      await expectUnavailable()
    } finally {
      await execute(serverUrl, `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    }
    await expectRecovered()
  })

  it('is the same when it takes connections and says nothing, for as long as that lasts', async () => {
    proxy.fallSilent()
    // The first to find out are told when the database has been silent for too long, the others at once.
    expectError(await api.getSession(sessionId), 503, 'unavailable')
    await expectUnavailable()
    await proxy.comeBack()
    await expectRecovered()
  })

  it.skipIf(reasonForNoOwnDatabase()).each([
    ['a list', 'sessions', {}],
    ['a filtered list', 'list_terms', { filter_by_configs: '{"agent":"a"}' }],
  ])('is 503 for %s that it breaks off: nothing can be in doubt', async (_what, table, query) => {
    await withConnection(service.databaseUrl, async (connection) => {
      await connection.query(`BEGIN; LOCK TABLE ${table}`)
      const list = api.listSessions(query)
      await vi.waitFor(async () =>
        expect(await lockWaits(service.databaseUrl, connection)).toBeGreaterThan(0),
      )
      await proxy.refuse()
      expectError(await list, 503, 'unavailable')
    })
    await proxy.comeBack()
    await expectRecovered()
  })

  it('does not keep a node from stopping', async () => {
    const own = await proxyDatabase(service.databaseUrl)
    const node = await startServer({ ...WAIT, DATABASE_URL: own.url })
    await own.refuse()
    const startedAt = Date.now()
    expect((await node.stop()).code).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(18_000)
  })
})
