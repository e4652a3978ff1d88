import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const service = useSharedService()
const annals = useTransfers(service)

/** A session with an input of each state, an open request and a resolved one, and a lease. */
async function fill(api: ApiClient, token: string) {
  const bytes = newBytes(50)
  await putBlob(service.node.url, token, bytes)
  const file = { annals_blob: sha256Of(bytes), media_type: 'text/plain' }
  const { id } = expectOk(await api.createSession({ user: 'ada' }), 201)
  const send = async (more: object) => {
    const body = { id: randomUUID(), mode: 'queue', kind: 'event', type: 'go', data: { n: 1.5 }, ...more }
    expectOk(await api.request('POST', `/api/v1/session/${id}/inbox`, { body }), 201)
    return body.id
  }
  const applied = await send({})
  const message = { kind: 'message', type: undefined, data: undefined, blob: { role: 'user', content: 'hi' } }
  const pending = [
    await send({ data: { file } }),
    await send({ ...message, not_before: '2999-01-01T00:00:00Z' }),
  ]
  const withdrawn = await send({})
  expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { apply: [applied] } }), 201)
  expectOk(await api.request('DELETE', `/api/v1/session/${id}/inbox/${withdrawn}`))
  const ask = async () => {
    const body = { kind: 'question', text: 'Which?' }
    return expectOk(
      await api.request<{ id: string }>('POST', `/api/v1/session/${id}/requests`, { body }),
      201,
    ).id
  }
  const [open, resolved] = [await ask(), await ask()]
  const body = { decision: 'answer', answer: 'both' }
  expectOk(await api.request('POST', `/api/v1/requests/${resolved}/resolve`, { body }))
  const lease = { owner: 'a', ttl_ms: 600_000 }
  const path = `/api/v1/session/${id}/lease`
  const { fence } = expectOk(await api.request<{ fence: number }>('POST', path, { body: lease }))
  return { id, pending, open, resolved, fence }
}

it('inbox and requests are in an export and work where it is imported, without the lease; erased, nothing is left', async () => {
  const [source, target] = [await service.newProject(), await service.newProject()]
  const api = await service.newClient({ token: source.token })
  const there = await service.newClient({ token: target.token })
  const { id, pending, open, resolved, fence } = await fill(api, source.token)
  const { path, body } = await annals.export(source.name)
  await annals.import(path, target.name)
  await annals.import(path, target.name)
  expect((await annals.export(target.name)).body).toEqual(body)
  const verified = await annals.run('verify', '--project', target.name)
  expect(verified.code, verified.stdout + verified.stderr).toBe(0)

  const { run } = expectOk(await there.getSession(id)) as unknown as { run: object }
  expect(run).toMatchObject({ state: 'waiting', pending: 2, open_requests: 1 })
  const claim = { owner: 'b', ttl_ms: 60_000 }
  const { items } = expectOk(
    await there.request<{ items: Array<{ fence: number; inputs: object[] }> }>('POST', '/api/v1/work/claim', {
      body: claim,
    }),
  )
  expect(items).toMatchObject([{ session_id: id, inputs: [{ id: pending[0] }] }])
  expect(items[0]!.fence).toBeGreaterThan(fence)
  const answer = { decision: 'answer', answer: 1 }
  expectOk(await there.request('POST', `/api/v1/requests/${open}/resolve`, { body: answer }))
  expectError(
    await there.request('POST', `/api/v1/requests/${resolved}/resolve`, { body: answer }),
    409,
    'resolved',
  )
  const apply = { body: { apply: pending } }
  expectOk(await there.request('POST', `/api/v1/session/${id}/entries`, apply), 201)

  expectOk(await api.request('DELETE', '/api/v1/user/ada'))
  for (const table of ['session_runs', 'session_inbox', 'session_requests'])
    expect(
      await queryRows(service.databaseUrl, `SELECT 1 FROM ${table} WHERE project_id = '${source.id}'`),
      table,
    ).toEqual([])
})
