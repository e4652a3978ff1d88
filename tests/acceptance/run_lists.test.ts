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

describe('a list', () => {
  it('of runs has the sessions of each state, the latest first, by cursor, and lists of sessions show no run', async () => {
    const api = await service.newClient()
    const lease = { owner: 'a', ttl_ms: 600_000 }
    const input = { mode: 'queue', kind: 'event', type: 'go', data: {} }
    const make = async (what: string, body: object) => {
      const { id } = expectOk(await api.createSession({}), 201)
      const answer = await api.request('POST', `/api/v1/session/${id}/${what}`, { body })
      expect(answer.status, answer.text).toBeLessThan(300)
      return id
    }
    const made: Record<string, string[]> = { running: [], waiting: [], queued: [] }
    for (const _thrice of [1, 2, 3]) {
      made.running!.unshift(await make('lease', lease))
      made.waiting!.unshift(await make('requests', { kind: 'approval' }))
      made.queued!.unshift(await make('inbox', input))
    }
    // It has no due input, so it is in no list.
    await make('inbox', { ...input, not_before: '2999-01-01T00:00:00Z' })
    for (const [state, ids] of Object.entries(made)) {
      const found: string[] = []
      for (let cursor: string | undefined; cursor !== ''; ) {
        const page: { items: Array<{ session_id: string; run: { state: string } }>; next_cursor: string } =
          expectOk(await api.request('GET', '/api/v1/runs', { query: { state, limit: 2, cursor } }))
        for (const { session_id, run } of page.items) {
          expect(run.state).toBe(state)
          found.push(session_id)
        }
        cursor = page.next_cursor
      }
      expect(found, state).toEqual(ids)
    }
    const listed = expectOk(await api.request<{ items: object[] }>('GET', '/api/v1/session')).items
    expect(listed).toHaveLength(10)
    for (const session of listed) expect(session).not.toHaveProperty('run')
  })

  it('of requests has those of a user, of a session and of a state', async () => {
    const api = await service.newClient()
    const asked: Record<string, string> = {}
    for (const user of ['ada', 'bo']) {
      const { id } = expectOk(await api.createSession({ user }), 201)
      const body = { kind: 'question', text: user }
      const request = await api.request<{ id: string }>('POST', `/api/v1/session/${id}/requests`, { body })
      asked[user] = expectOk(request, 201).id
    }
    const found = async (query: Record<string, string>) => {
      const page = await api.request<{ items: Array<{ id: string }> }>('GET', '/api/v1/requests', { query })
      return expectOk(page).items.map(({ id }) => id)
    }
    expect(await found({})).toEqual([asked.ada, asked.bo])
    expect(await found({ user: 'bo' })).toEqual([asked.bo])
    expect(await found({ user: 'nobody' })).toEqual([])
    const body = { decision: 'answer', answer: 'yes' }
    expectOk(await api.request('POST', `/api/v1/requests/${asked.bo}/resolve`, { body }))
    expect(await found({ user: 'bo' })).toEqual([])
    expect(await found({ user: 'bo', state: 'resolved' })).toEqual([asked.bo])
    expect(await found({ user: 'ada', state: 'resolved' })).toEqual([])
  })
})
