import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { proxyDatabase } from '../harness/database_proxy.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { metricSamples } from '../harness/metric_samples.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

const service = useService()

async function samples(api: ApiClient): Promise<Map<string, number>> {
  const { status, text } = await api.request('GET', '/metrics')
  expect(status).toBe(200)
  return metricSamples(text)
}

describe('/metrics', () => {
  it('counts requests by route, errors by name, and what commits held', async () => {
    const node = await service.startNode()
    const api = await service.newClient({ node })
    const log = await newSessionLog(api)
    const entries = Array.from({ length: 7 }, () => ({ kind: 'event', type: 'note', data: {} }))
    expectOk(await log.batch(entries), 201)
    expectOk(await log.addEvent())
    expectError(await api.getSession(randomUUID()), 404, 'session_not_found')
    expectError(await log.batch(entries, { headers: { 'If-Match': '"1"' } }), 409, 'seq_conflict')

    const found = await samples(api)
    const requests = 'annals_http_request_duration_seconds_count'
    const route = '/api/v1/session/:session_id'
    expect(found.get(`${requests}{route="${route}/events",method="POST",status="200"}`)).toBe(1)
    expect(found.get(`${requests}{route="${route}",method="GET",status="404"}`)).toBe(1)
    expect(found.get('annals_errors_total{error="session_not_found"}')).toBe(1)
    expect(found.get('annals_errors_total{error="seq_conflict"}')).toBe(1)
    // Two appends that were stored, of 7 and 1, and one that was refused by the statement itself.
    expect(found.get('annals_flush_entries_count')).toBe(3)
    expect(found.get('annals_flush_entries_sum')).toBe(15)
    expect(found.get('annals_flush_duration_seconds_count')).toBe(3)
    expect(found.get('annals_flush_wait_seconds_count')).toBe(3)
    expect(found.get('annals_database_up')).toBe(1)
    expect(found.get('annals_append_queue_requests')).toBe(0)
    const appending = found.get('annals_database_connections{pool="appends"}')
    // On a cluster, others lead to the worker that has the project.
    if (inject('testServer').mode === 'cloned') expect(appending).toBe(1)
    expect(found.get('annals_database_connections{pool="requests"}')).toBeGreaterThan(0)
    expect([...found.keys()].filter((name) => name.startsWith('annals_build_info'))).toHaveLength(1)
  })

  it('makes no series of an id, a token or a tenant', async () => {
    const api = await service.newClient()
    const log = await newSessionLog(api, { user: 'alice' })
    await api.request('GET', `/api/v1/no/such/${log.id}`)
    await api.request('DELETE', '/api/v1/user/alice')
    const { text } = await api.request('GET', '/metrics')
    expect(text).not.toContain(log.id)
    expect(text).not.toMatch(/alice|sk-annals|[0-9a-f]{8}-[0-9a-f]{4}-/)
  })

  it('tells that the database is away, what that cost, and that it is back', async () => {
    const proxy = await proxyDatabase(service.databaseUrl)
    try {
      const node = await service.startNode({ DATABASE_URL: proxy.url, ANNALS_DATABASE_WAIT_MS_MAX: '1500' })
      const api = await service.newClient({ node })
      const { id } = expectOk(await api.createSession({}), 201)
      await proxy.refuse()
      expectError(await api.appendEvent(id, { type: 'note', data: {} }), 503, 'unavailable')
      const away = await samples(api)
      expect(away.get('annals_database_up')).toBe(0)
      expect(away.get('annals_errors_total{error="unavailable"}')).toBe(1)
      expect(away.get('annals_flush_troubles_total{trouble="away"}')).toBeGreaterThan(0)
      expect(away.get('annals_flush_troubles_total{trouble="unavailable"}')).toBe(1)
      expect([...away.keys()].some((name) => name.startsWith('annals_statement_errors_total'))).toBe(true)
      await proxy.comeBack()
      await vi.waitFor(async () => expect((await samples(api)).get('annals_database_up')).toBe(1), 10_000)
    } finally {
      await proxy.close()
    }
  })
})
