import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, LearningSpace, Page } from '../harness/api_client.ts'
import { contains, type Json } from '../harness/containment.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let api: ApiClient
let spaces: LearningSpace[]

const USERS = ['ada', 'eve', undefined]
const METAS: Json[] = [{}, { a: 1 }, { a: 1, b: { c: [1, 2] } }, { a: '1' }, { b: { c: [2] } }]

beforeAll(async () => {
  api = await service.newClient()
  spaces = []
  for (let n = 0; n < 30; n += 1) {
    const body = { user: USERS[n % 3], meta: METAS[n % 5] }
    spaces.push(expectOk(await api.createLearningSpace(body), 201))
  }
})

const path = '/api/v1/learning_spaces'
const list = (query?: Query, client = api) => client.request<Page<LearningSpace>>('GET', path, { query })
const patch = (id: string, meta: unknown, client = api) =>
  client.request<LearningSpace>('PATCH', `${path}/${id}`, { body: { meta } })
const remove = (id: string, client = api) => client.request('DELETE', `${path}/${id}`)

describe('the list of learning spaces', () => {
  it('returns 20 unless told otherwise, oldest first', async () => {
    const page = expectOk(await list())
    expect(page.items).toEqual(spaces.slice(0, 20))
    expect(page.has_more).toBe(true)
    expect(expectOk(await list({ limit: 200 }))).toEqual({ items: spaces, has_more: false, next_cursor: '' })
  })

  const filters: Array<[string | undefined, Json | undefined]> = [
    [undefined, undefined],
    ['ada', undefined],
    ['Ada', undefined],
    ['nobody', undefined],
    [undefined, {}],
    [undefined, { a: 1 }],
    [undefined, { a: '1' }],
    [undefined, { b: { c: [2] } }],
    [undefined, { b: { c: 2 } }],
    ['eve', { a: 1 }],
    ['eve', { a: null }],
  ]
  it.each(filters)('of user %s with meta %j is walked whole in both directions', async (user, meta) => {
    const userId = spaces[USERS.indexOf(user)]?.user_id
    const expected = spaces.filter(
      (space) =>
        (user === undefined || (userId !== undefined && space.user_id === userId)) &&
        (meta === undefined || contains(space.meta as Json, meta)),
    )
    const filter = { user, filter_by_meta: meta === undefined ? undefined : JSON.stringify(meta) }
    for (const limit of [1, 4, 200]) {
      const walk = (time_desc: boolean) =>
        walkPages((cursor) => list({ ...filter, limit, cursor, time_desc }))
      expect(await walk(false)).toEqual(expected)
      expect(await walk(true)).toEqual([...expected].reverse())
    }
  })

  it('refuses a cursor with another filter, order or list', async () => {
    const query = { user: 'ada', filter_by_meta: '{"a":1}', limit: 1 }
    const { next_cursor: cursor } = expectOk(await list(query))
    const others: Query[] = [
      { user: 'eve' },
      { user: undefined },
      { filter_by_meta: '{"a":2}' },
      { filter_by_meta: undefined },
      { time_desc: true },
    ]
    for (const other of others) expectError(await list({ ...query, cursor, ...other }), 400, 'invalid_cursor')
    expectOk(await list({ ...query, cursor, limit: 7 }))
    expectError(await api.listSessions({ user: 'ada', limit: 1, cursor }), 400, 'invalid_cursor')
    expectError(await list({ ...query, cursor: 'x' }), 400, 'invalid_cursor')
  })

  it.each([
    'limit=0',
    'limit=201',
    'limit=1.5',
    'user=',
    'time_desc=yes',
    'filter_by_meta=',
    'filter_by_meta=[]',
    'filter_by_meta=%7B',
    'filter_by_configs=%7B%7D',
    'user=a&user=b',
  ])('refuses %s and names the parameter', async (query) => {
    const answer = await api.request('GET', `${path}?${query}`)
    expectError(answer, 400, 'invalid_request', query.split('=')[0]!)
  })

  it('of another project shows nothing of this one, whatever the user is called', async () => {
    const stranger = await service.newClient()
    expect(expectOk(await list({}, stranger)).items).toEqual([])
    expect(expectOk(await list({ user: 'ada' }, stranger)).items).toEqual([])
    const { next_cursor: cursor } = expectOk(await list({ limit: 1 }))
    const answer = await list({ limit: 1, cursor }, stranger)
    if (answer.status === 200) expect(answer.json.data.items).toEqual([])
    else expectError(answer, 400, 'invalid_cursor')
  })
})

describe('a learning space', () => {
  it('has its meta merged by key, and updated_at moves', async () => {
    const space = expectOk(await api.createLearningSpace({ meta: { a: 1, b: { c: 2 } } }), 201)
    const merged = expectOk(await patch(space.id, { a: null, b: { d: 3 }, e: 4 }))
    expect(merged).toEqual({ ...space, meta: { b: { d: 3 }, e: 4 }, updated_at: merged.updated_at })
    expect(merged.updated_at > space.updated_at).toBe(true)
    expect(expectOk(await api.getLearningSpace(space.id))).toEqual(merged)
    expectOk(await remove(space.id))
  })

  it('loses nothing of 20 simultaneous patches of different keys', async () => {
    const { id } = expectOk(await api.createLearningSpace({}), 201)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => patch(id, { [`k${n}`]: n })))
    for (const answer of answers) expectOk(answer)
    const keys = Object.fromEntries(answers.map((_, n) => [`k${n}`, n]))
    expect(expectOk(await api.getLearningSpace(id)).meta).toEqual(keys)
    expectOk(await remove(id))
  })

  it('keeps its meta when a patch does not fit', async () => {
    const { id } = expectOk(await api.createLearningSpace({ meta: { a: 1 } }), 201)
    const before = expectOk(await api.getLearningSpace(id))
    for (const meta of [null, [], 'x', undefined])
      expectError(await patch(id, meta), 400, 'invalid_request', 'meta')
    expectError(await patch(id, { b: 'x'.repeat(65_536) }), 413, 'payload_too_large')
    expect(expectOk(await api.getLearningSpace(id))).toEqual(before)
    expectOk(await remove(id))
  })

  it('that is deleted is gone from everywhere', async () => {
    const { id } = expectOk(await api.createLearningSpace({ user: 'shortly' }), 201)
    expect(expectOk(await remove(id))).toEqual({})
    expectError(await api.getLearningSpace(id), 404, 'learning_space_not_found')
    expectError(await patch(id, {}), 404, 'learning_space_not_found')
    expectError(await remove(id), 404, 'learning_space_not_found')
    expect(expectOk(await list({ user: 'shortly' })).items).toEqual([])
  })

  it('of another tenant answers as one that nobody has, and stays as it is', async () => {
    const stranger = await service.newClient()
    const { id } = spaces[0]!
    const calls = [
      (sought: string) => stranger.getLearningSpace(sought),
      (sought: string) => patch(sought, { x: 1 }, stranger),
      (sought: string) => remove(sought, stranger),
    ]
    for (const call of calls) {
      const [foreign, unknown] = [await call(id), await call(NOBODYS_ID)]
      expectError(foreign, 404, 'learning_space_not_found')
      expect(foreign.text).toBe(unknown.text)
    }
    expect(expectOk(await api.getLearningSpace(id))).toEqual(spaces[0])
  })
})
