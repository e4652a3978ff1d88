import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
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
