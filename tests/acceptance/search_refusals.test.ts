import { beforeEach, describe, expect, it } from 'vitest'
import { Cursors } from '../../packages/server/src/http/request/cursor.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { search, switchSearch } from '../harness/search.ts'
import { useSharedService } from '../harness/service.ts'

/* Searches that are refused, or find nothing. */

const service = useSharedService()
let api: ApiClient
let switchOn: () => Promise<void>

beforeEach(async () => {
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  switchOn = () => switchSearch(service.adminClient(), project.id, true)
})

describe('search', () => {
  it('is refused until it is switched on, and says how that is done', async () => {
    expectError(await search(api, 'refund'), 409, 'search_off', 'annals project set', '--search on')
  })

  it('of a project without any session is empty', async () => {
    await switchOn()
    const { items, has_more, next_cursor } = expectOk(
      await search(api, 'refund', { filter_by_configs: '{"a":1}' }),
    )
    expect({ items, has_more, next_cursor }).toEqual({ items: [], has_more: false, next_cursor: '' })
  })

  it.each<[Query, string]>([
    [{ q: '' }, 'q'],
    [{ q: '-paid' }, 'q'],
    [{ q: 'a '.repeat(33) }, '32 words'],
    [{ q: 'x'.repeat(1025) }, 'q'],
    [{ q: undefined }, 'q'],
    [{ from: 'yesterday' }, 'from'],
    [{ to: '0000-01-01T00:00:00Z' }, 'to'],
    [{ kind: 'both' }, 'kind'],
    [{ order: 'oldest' }, 'order'],
    [{ limit: 201 }, 'limit'],
    [{ session_id: 'x' }, 'session_id'],
    [{ filter_by_configs: '[]' }, 'filter_by_configs'],
    [{ time_desc: 'true' }, 'time_desc'],
    [{ type: '' }, 'type'],
  ])('refuses %j', async (query, word) => {
    expectError(
      await api.request('GET', '/api/v1/search', { query: { q: 'x', ...query } }),
      400,
      'invalid_request',
      word,
    )
  })

  it.each(['newest', 'relevance'])(
    'refuses a cursor that a caller made up, in the order %s',
    async (order) => {
      const project = await service.newProject()
      await switchSearch(service.adminClient(), project.id, true)
      const client = await service.newClient({ token: project.token })
      const cursors = new Cursors('search', order, 'x', JSON.stringify({ project_id: project.id }))
      const searched = (position: string) => {
        const cursor = cursors.write(position)
        return client.request('GET', '/api/v1/search', { query: { q: 'x', order, cursor } })
      }
      const place = { created_at: '2026-11-21T09:30:00.123456Z', session_id: null, seq: null }
      const of = (change: object, shown: unknown = 0) => {
        const changed = { ...place, ...change }
        return JSON.stringify(order === 'newest' ? changed : { newest: changed, shown })
      }
      const wrong = ['x', '0000-01-01T00:00:00Z'].map((created_at) => of({ created_at }))
      const made_up = ['', 'x', '{', 'null', '\0', '{}', of({ session_id: 'x' }), of({ seq: 1e30 }), ...wrong]
      if (order === 'relevance') made_up.push(of({}, -1), of({}, '1'))
      for (const position of made_up) expectError(await searched(position), 400, 'invalid_cursor', 'cursor')
      expectOk(await searched(of({ session_id: NOBODYS_ID, seq: 1 })))
    },
  )
})
