import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let api: ApiClient
const created: Session[] = []

beforeAll(async () => {
  api = await service.newClient()
  for (let index = 0; index < 25; index += 1) {
    const user = index % 2 ? 'odd' : 'even'
    created.push(expectOk(await api.createSession({ user, configs: { index } }), 201))
  }
})

const list = (query: string) => api.request('GET', `/api/v1/session${query}`)

describe('listing sessions', () => {
  it('returns 20, oldest first, when nothing is asked for', async () => {
    const page = expectOk(await api.listSessions())
    expect(Object.keys(page).sort()).toEqual(['has_more', 'items', 'next_cursor'])
    expect(page.items).toEqual(created.slice(0, 20))
    expect(page.has_more).toBe(true)
    expect(page.next_cursor).not.toBe('')
  })

  it('ends with has_more false and an empty cursor, also when the last page is full', async () => {
    for (const limit of [25, 26, 200]) {
      const page = expectOk(await api.listSessions({ limit }))
      expect(page).toEqual({ items: created, has_more: false, next_cursor: '' })
    }
  })

  it('returns an empty list for an identifier that no user has', async () => {
    for (const user of ['nobody', 'ODD', 'od', ' odd', '%', 'null']) {
      const page = expectOk(await api.listSessions({ user }))
      expect(page).toEqual({ items: [], has_more: false, next_cursor: '' })
    }
  })

  it('takes limits from 1 to 200', async () => {
    expect(expectOk(await api.listSessions({ limit: 1 })).items).toEqual(created.slice(0, 1))
    expect(expectOk(await api.listSessions({ limit: 200 })).items).toEqual(created)
  })
})

describe('a parameter of the session list', () => {
  it.each([
    '0',
    '201',
    '-1',
    '1.5',
    'x',
    '',
    '1e1',
    '0x10',
    '%2B5',
    '%205',
    '5%20',
    'null',
    '1,2',
    '9999999999999999999',
  ])('limit=%s is refused, and the sentence names it and its range', async (value) => {
    expectError(await list(`?limit=${value}`), 400, 'invalid_request', 'limit', '1', '200')
  })

  it.each(['TRUE', 'True', '1', '0', 'yes', 'on', '', 'null', '%20true'])(
    'time_desc=%s is refused, and the sentence names it and what it takes',
    async (value) => {
      expectError(await list(`?time_desc=${value}`), 400, 'invalid_request', 'time_desc', 'true', 'false')
    },
  )

  it.each(['[]', '[{"a":1}]', '"text"', '5', 'true', 'null', '{bad', '{"a":1', '', ' ', '{}{}', "{'a':1}"])(
    'filter_by_configs=%s is refused, and the sentence names it',
    async (value) => {
      const answer = await list(`?filter_by_configs=${encodeURIComponent(value)}`)
      expectError(answer, 400, 'invalid_request', 'filter_by_configs', 'object')
    },
  )

  it('that is an empty user is refused', async () => {
    expectError(await list('?user='), 400, 'invalid_request', 'user')
    expectError(await list('?user'), 400, 'invalid_request', 'user')
  })

  it.each(['limit=5', 'user=odd', 'time_desc=true', 'filter_by_configs=%7B%7D', 'cursor=x'])(
    'given twice is refused and named: %s',
    async (pair) => {
      const name = pair.slice(0, pair.indexOf('='))
      expectError(await list(`?${pair}&${pair}`), 400, 'invalid_request', name)
      expectError(await list(`?${pair}&limt=1&${pair}`), 400, 'invalid_request')
    },
  )

  it.each([
    'User=odd',
    'users=odd',
    'user_id=odd',
    'filter=%7B%7D',
    'limit%5B%5D=5',
    'page=2',
    'a.b=1',
    '__proto__=1',
    'constructor=1',
    'x',
  ])('that is unknown is refused and named: %s', async (pair) => {
    const name = decodeURIComponent(pair.split('=')[0]!)
    expectError(await list(`?${pair}`), 400, 'invalid_request', name)
    expectError(await list(`?user=odd&${pair}`), 400, 'invalid_request', name)
  })
})

describe('id_prefix', () => {
  const prefix = 'abcd1234'
  const ids = [
    '0000-4000-8000-000000000000',
    '0000-4000-8000-00000000000a',
    'ffff-4fff-bfff-ffffffffffff',
  ].map((rest) => `${prefix}-${rest}`)
  const beside = ['abcd1233-ffff-4fff-bfff-ffffffffffff', 'abcd1235-0000-4000-8000-000000000000']
  let own: ApiClient
  const walk = async (query: Query) =>
    (await walkPages((cursor) => own.listSessions({ limit: 1, ...query, cursor }))).map(({ id }) => id)

  beforeAll(async () => {
    own = await service.newClient()
    // The youngest ids are created first, so the order of creation is another.
    for (const use_uuid of [...beside, ...ids].reverse())
      expectOk(await own.createSession({ use_uuid, user: 'omar' }), 201)
  })

  it('finds the sessions whose ids begin with it, however many are newer, in the order of ids', async () => {
    expect(await walk({ id_prefix: prefix })).toEqual(ids)
    expect(await walk({ id_prefix: 'ABCD1234-', time_desc: true })).toEqual(ids.toReversed())
    expect(await walk({ id_prefix: 'abcd' })).toEqual([beside[0], ...ids, beside[1]])
    expect(await walk({ id_prefix: ids[1]!.slice(0, 35) })).toEqual(ids.slice(0, 2))
    for (const id of ids) expect(await walk({ id_prefix: id })).toEqual([id])
    expect(await walk({ id_prefix: 'abcd1236' })).toEqual([])
    expect(expectOk(await api.listSessions({ id_prefix: prefix })).items).toEqual([])
  })

  it('has cursors of its own', async () => {
    const { next_cursor: cursor } = expectOk(await own.listSessions({ id_prefix: prefix, limit: 1 }))
    for (const query of [{}, { id_prefix: 'abcd' }, { id_prefix: prefix, time_desc: true }])
      expectError(await own.listSessions({ ...query, cursor }), 400, 'invalid_cursor')
  })

  it.each(['abc', 'abcg', 'abcd12345', 'abcd1234-0000-4000-8000-0000000000000', '%25%25%25%25', ''])(
    'that cannot begin an id is refused: "%s"',
    async (value) => {
      expectError(await list(`?id_prefix=${value}`), 400, 'invalid_request', 'id_prefix')
    },
  )

  it.each(['user=omar', 'filter_by_configs=%7B%7D', 'parent=none', 'order_by=created_at'])(
    'is refused beside %s',
    async (pair) => {
      const [name] = pair.split('=')
      expectError(await list(`?id_prefix=abcd&${pair}`), 400, 'invalid_request', 'id_prefix', name!)
    },
  )
})

describe('a cursor of the session list', () => {
  const filter = '{"index":1}'
  const cursorOf = async (query: Record<string, string | number | boolean>) => {
    const { next_cursor } = expectOk(await api.listSessions({ limit: 2, ...query }))
    expect(next_cursor).not.toBe('')
    return next_cursor
  }

  it('continues after the last item, also with another limit', async () => {
    const cursor = await cursorOf({})
    expect(expectOk(await api.listSessions({ cursor, limit: 5 })).items).toEqual(created.slice(2, 7))
    expect(expectOk(await api.listSessions({ cursor })).items).toEqual(created.slice(2, 22))
  })

  it('is refused with another user, filter or direction than the one that made it', async () => {
    const all = await cursorOf({})
    const odd = await cursorOf({ user: 'odd' })
    const newest = await cursorOf({ time_desc: true })
    const refused = [
      { cursor: all, user: 'odd' },
      { cursor: all, time_desc: true },
      { cursor: all, filter_by_configs: filter },
      { cursor: odd },
      { cursor: odd, user: 'even' },
      { cursor: odd, user: 'nobody' },
      { cursor: odd, user: 'odd', time_desc: true },
      { cursor: odd, user: 'odd', filter_by_configs: filter },
      { cursor: newest },
      { cursor: newest, time_desc: false },
    ]
    for (const query of refused) expectError(await api.listSessions(query), 400, 'invalid_cursor', 'cursor')
  })

  it('is refused when it is damaged, wherever that is', async () => {
    const cursor = await cursorOf({})
    const replaced = [...cursor].map((letter, at) => {
      return cursor.slice(0, at) + (letter === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
    })
    const damaged = [
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}A`,
      `${cursor}=`,
      `${cursor}.x`,
      cursor + cursor,
    ]
    const nonsense = ['x', 'null', '0', ' ', '{}', '%', '😀', cursor.toUpperCase()]
    for (const value of [...replaced, ...damaged, ...nonsense]) {
      expectError(await api.listSessions({ cursor: value }), 400, 'invalid_cursor')
    }
  })

  it('that is empty is refused rather than starting the walk anew, as is one that cannot be any', async () => {
    for (const value of ['', 'A'.repeat(5_000), '%00']) {
      const answer = await list(`?cursor=${value}`)
      expect(['invalid_cursor', 'invalid_request']).toContain(answer.json.error)
      expectError(answer, 400, answer.json.error, 'cursor')
    }
  })

  it('of the event list is none of the session list', async () => {
    const { id } = created[0]!
    for (let count = 0; count < 2; count += 1) expectOk(await api.appendEvent(id, { type: 'note', data: {} }))
    const { next_cursor } = expectOk(await api.listEvents(id, { limit: 1 }))
    expectError(await api.listSessions({ cursor: next_cursor }), 400, 'invalid_cursor')
    expectError(await api.listEvents(id, { cursor: await cursorOf({}) }), 400, 'invalid_cursor')
  })

  it('shows nothing of its project to another', async () => {
    const other = await service.newClient()
    const answer = await other.listSessions({ cursor: await cursorOf({}) })
    if (answer.status === 200) expect(expectOk(answer).items).toEqual([])
    else expectError(answer, 400, 'invalid_cursor')
  })
})
