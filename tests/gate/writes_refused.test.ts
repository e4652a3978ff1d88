import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { databaseNameOf } from '../harness/database_url.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { metricSamples } from '../harness/metric_samples.ts'
import { type OwnServer, startOwnServer } from '../harness/own_server.ts'
import { createProject, expectOrderlyEnds, useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const PATIENTLY = { timeout: 30_000, interval: 100 }
/** Server processes that wait for the answer to a probe's question. */
const QUESTIONS =
  "SELECT pid FROM pg_stat_activity WHERE application_name = 'annals probe' AND wait_event = 'SyncRep'"
const note = { type: 'note', data: {} }
const CANCEL_COMMITS_THAT_WAIT =
  "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name <> 'annals probe'"

async function readiness(api: ApiClient): Promise<[number, unknown]> {
  const { status, json } = await api.request<unknown>('GET', '/ready')
  return [status, json]
}

async function writable(api: ApiClient): Promise<number | undefined> {
  return metricSamples((await api.request('GET', '/metrics')).text).get('annals_database_writable')
}

describe.skipIf(reasonForNoOwnDatabase())('a database that is read-only for a moment', () => {
  const service = useService()

  /** As the connections to an old primary, which is a standby now, or those of a role that could not write. */
  async function whileReadOnly(action: () => Promise<void>): Promise<void> {
    const { serverUrl } = inject('testServer')
    const name = databaseNameOf(service.databaseUrl)
    await execute(serverUrl, `ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    try {
      await execute(serverUrl, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
        name,
      ])
      await action()
    } finally {
      await execute(serverUrl, `ALTER DATABASE ${name} RESET default_transaction_read_only`)
    }
  }

  it('is 503 at /ready meanwhile, and no connection from that time stays in use', async () => {
    const api = await service.newClient()
    const { id } = expectOk(await api.createSession({}), 201)
    await whileReadOnly(async () => {
      await vi.waitFor(async () => {
        expectError(await api.appendEvent(id, note), 503, 'unavailable')
        expectError(await api.createSession({}), 503, 'unavailable')
        expect(await readiness(api)).toEqual([503, { status: 'database read-only' }])
      }, PATIENTLY)
      expect(await writable(api)).toBe(0)
      expectOk(await api.getSession(id))
    })
    await vi.waitFor(async () => {
      expectOk(await api.appendEvent(id, note))
      expectOk(await api.createSession({}), 201)
      expect(await readiness(api)).toEqual([200, { status: 'ready' }])
    }, PATIENTLY)
    expect(await writable(api)).toBe(1)
  })
})

describe('a synchronous standby that is away', () => {
  let server: OwnServer
  let node: AnnalsServer
  let api: ApiClient

  beforeAll(async () => {
    server = await startOwnServer()
    node = await startServer({ DATABASE_URL: server.url, ANNALS_COMMIT_MS_MAX: '2000' })
    api = apiClient(node.url, (await createProject(apiClient(node.url, ADMIN_TOKEN))).token)
  })
  afterAll(async () => {
    api?.close()
    if (node) expectOrderlyEnds([await node.stop()])
    await server?.remove()
  })

  async function setStandbys(names: string): Promise<void> {
    await execute(server.url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await execute(server.url, 'SELECT pg_reload_conf()')
  }

  /** A reload takes effect when the checkpointer has read it. Until then, commits wait for no standby. */
  async function commitsWait(): Promise<void> {
    await vi.waitFor(async () => {
      execute(server.url, "SELECT pg_logical_emit_message(true, 'test', '')").catch(() => undefined)
      expect(await queryRows(server.url, CANCEL_COMMITS_THAT_WAIT)).not.toEqual([])
    }, PATIENTLY)
  }

  it('ends every write within the bound of an append, refuses the next ones, and is 503 at /ready', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    await setStandbys('gone')
    await commitsWait()
    // What was sent is in doubt: nobody answers it, and the connection is closed.
    const began = performance.now()
    const writes = await Promise.allSettled([
      api.createSession({}),
      api.request('PUT', `/api/v1/session/${id}/configs`, { body: { configs: { a: 1 } } }),
      api.appendEvent(id, note),
    ])
    expect(writes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    // After 2 s, and what a busy machine adds.
    expect(performance.now() - began).toBeLessThan(20_000)
    await vi.waitFor(async () => {
      expect(await readiness(api)).toEqual([503, { status: 'database commits nothing' }])
    }, PATIENTLY)
    expect(await writable(api)).toBe(0)
    expectError(await api.createSession({}), 503, 'unavailable')
    expectOk(await api.getSession(id))
    // Each question is taken back: a server that waits for its standby does not notice that a client has gone.
    const asked = new Set<number>()
    await vi.waitFor(async () => {
      const questions = await queryRows<{ pid: number }>(server.url, QUESTIONS)
      expect(questions.length).toBeLessThanOrEqual(2)
      for (const { pid } of questions) asked.add(pid)
      expect(asked.size).toBeGreaterThan(3)
    }, PATIENTLY)
    await setStandbys('')
    await vi.waitFor(async () => {
      expect(await readiness(api)).toEqual([200, { status: 'ready' }])
      expectOk(await api.createSession({}), 201)
      expectOk(await api.appendEvent(id, note))
    }, PATIENTLY)
  })
})
