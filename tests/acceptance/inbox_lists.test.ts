import { randomUUID } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()

it('input is listed as due from its time on', async () => {
  const api = await service.newClient()
  const { id: session } = expectOk(await api.createSession({}), 201)
  const path = `/api/v1/session/${session}/inbox`
  const send = async (more: object) => {
    const body = { id: randomUUID(), mode: 'queue', kind: 'event', type: 'go', data: {}, ...more }
    expectOk(await api.request('POST', path, { body }), 201)
    return body.id
  }
  const later = await send({ not_before: '2999-01-01T00:00:00Z' })
  const due = await send({})
  const listed = async (state: string) => {
    const found = await api.request<{ items: Array<{ id: string }> }>('GET', path, { query: { state } })
    return expectOk(found).items.map(({ id }) => id)
  }
  expect(await listed('pending')).toEqual([later, due])
  expect(await listed('due')).toEqual([due])
})

it('input whose time is over is in no list, with no claim, and cannot be applied', async () => {
  const agent = randomUUID()
  const api = await service.newClient()
  const { id: session } = expectOk(await api.createSession({ configs: { agent } }), 201)
  const at = `/api/v1/session/${session}`
  const send = (more: object) => {
    const body = { id: randomUUID(), mode: 'queue', kind: 'event', type: 'go', data: {}, ...more }
    return api.request<{ id: string; state: string }>('POST', `${at}/inbox`, { body })
  }
  const expires_at = new Date(Date.now() + 1_500).toISOString()
  const late = expectOk(await send({ expires_at }), 201)
  const past = expectOk(await send({ expires_at: '2020-01-01T00:00:00Z' }), 201)
  expect([late.state, past.state]).toEqual(['pending', 'expired'])
  const states = async () => {
    const found: number[] = []
    for (const state of ['pending', 'due', 'withdrawn']) {
      const page = await api.request<{ items: object[] }>('GET', `${at}/inbox`, { query: { state } })
      found.push(expectOk(page).items.length)
    }
    return found
  }
  await vi.waitFor(async () => expect(await states()).toEqual([0, 0, 0]))
  const claim = { owner: 'a', ttl_ms: 1_000, filter_by_configs: { agent } }
  const claimed = await api.request<{ items: object[] }>('POST', '/api/v1/work/claim', { body: claim })
  expect(expectOk(claimed).items).toEqual([])
  expect(expectOk(await api.getSession(session))).toMatchObject({ run: { state: 'idle', pending: 0 } })
  for (const { id } of [late, past]) {
    const apply = { body: { apply: [id] } }
    expectError(await api.request('POST', `${at}/entries`, apply), 409, 'not_pending', id)
  }
  expect(expectOk(await api.listEvents(session)).items).toEqual([])
})
