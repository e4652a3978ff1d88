import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()

describe('a session that waits', () => {
  it('stands where its last open request does, and nowhere without one', async () => {
    const api = await service.newClient()
    const agent = randomUUID()
    const create = async () => expectOk(await api.createSession({ configs: { agent } }), 201).id
    const [one, two] = [await create(), await create()]
    const ask = async (id: string) =>
      expectOk(
        await api.request<{ id: string }>('POST', `/api/v1/session/${id}/requests`, {
          body: { kind: 'approval' },
        }),
        201,
      ).id
    const deny = async (id: string) =>
      expectOk(await api.request('POST', `/api/v1/requests/${id}/resolve`, { body: { decision: 'deny' } }))
    const waiting = async () => {
      const query = { state: 'waiting', limit: 1, filter_by_configs: JSON.stringify({ agent }) }
      const ids: string[] = []
      for (let cursor: string | undefined; cursor !== ''; ) {
        const page: { items: Array<{ session_id: string }>; next_cursor: string } = expectOk(
          await api.request('GET', '/api/v1/runs', { query: { ...query, cursor } }),
        )
        ids.push(...page.items.map(({ session_id }) => session_id))
        cursor = page.next_cursor
      }
      return ids
    }
    const [first, other, last] = [await ask(one), await ask(two), await ask(one)]
    expect(await waiting()).toEqual([one, two])
    await deny(last)
    expect(await waiting()).toEqual([two, one])
    for (const id of [first, other]) await deny(id)
    expect(await waiting()).toEqual([])
  })
})
