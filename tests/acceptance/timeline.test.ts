import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import {
  mixedEntries,
  newSessionLog,
  type SessionLog,
  sessionLog,
  type TimelineItem,
} from '../harness/session_log.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let api: ApiClient
let log: SessionLog
let all: TimelineItem[]

beforeAll(async () => {
  api = await service.newClient()
  log = await newSessionLog(api)
  all = expectOk(await log.batch(mixedEntries(60)), 201).items
})

const walk = (query: Query) => walkPages((cursor) => log.timeline({ ...query, cursor }))

describe('a timeline', () => {
  it('holds the messages and events in one list, in order of seq', async () => {
    const own = await newSessionLog(api)
    const { parts: _a, ...message } = expectOk(await own.add({ role: 'user', content: 'a' }), 201)
    const event = expectOk(await own.addEvent('tool', { x: [1] }))
    const { parts: _b, ...last } = expectOk(await own.add({ role: 'assistant', content: 'b' }), 201)
    const page = expectOk(await own.timeline())
    expect([page.items.length, page.has_more, page.next_cursor]).toEqual([3, false, ''])
    expect(page.items).toMatchObject([
      { kind: 'message', ...message },
      { kind: 'event', ...event },
      { kind: 'message', ...last },
    ])
  })

  it('numbers entries from 1 without gaps, with created_at that never decreases', async () => {
    const items = await walk({ limit: 7 })
    expect(items.map((item) => item.seq)).toEqual(items.map((_, index) => index + 1))
    for (const item of items) {
      expect(item.id).toMatch(UUID)
      expect(item.created_at).toMatch(TIMESTAMP)
    }
    const times = items.map((item) => item.created_at as string)
    expect(times).toEqual([...times].sort())
    expect(items).toEqual(all)
  })

  it('returns 50 items unless told otherwise', async () => {
    const page = expectOk(await log.timeline())
    expect([page.items.length, page.has_more]).toEqual([50, true])
  })

  it('returns 1,000 items at once, and messages and events as many', async () => {
    const long = await newSessionLog(api)
    for (const name of ['a', 'b']) expectOk(await long.batch(mixedEntries(600, name)), 201)
    const whole = await walkPages((cursor) => long.timeline({ limit: 77, cursor }))
    const page = expectOk(await long.timeline({ limit: 1_000 }))
    expect(page.items).toEqual(whole.slice(0, 1_000))
    const rest = expectOk(await long.timeline({ limit: 1_000, cursor: page.next_cursor }))
    expect([rest.items, rest.has_more]).toEqual([whole.slice(1_000), false])
    const ids = (kind: string) => whole.filter((item) => item.kind === kind).map(({ id }) => id)
    const events = expectOk(await api.listEvents(long.id, { limit: 1_000 }))
    expect(events.items.map(({ id }) => id)).toEqual(ids('event'))
    expect(expectOk(await long.list({ limit: 1_000 })).ids).toEqual(ids('message'))
  })

  const filters: Query[] = [
    {},
    { kind: 'message' },
    { kind: 'event' },
    { type: 'type-1' },
    { kind: 'event', type: 'type-2' },
    { kind: 'message', type: 'type-1' },
    { after_seq: 0 },
    { after_seq: 10 },
    { after_seq: 60 },
    { kind: 'message', after_seq: 31 },
    { type: 'TYPE-1' },
  ]
  it.each(filters)(
    'filtered by %j holds exactly what fits, in both directions and page sizes',
    async (query) => {
      const expected = all.filter(
        (item) =>
          (query.kind === undefined || item.kind === query.kind) &&
          (query.type === undefined || item.type === query.type) &&
          item.seq > Number(query.after_seq ?? 0),
      )
      for (const limit of [1, 4, 200]) {
        if (limit === 1 && expected.length > 25) continue
        expect(await walk({ ...query, limit })).toEqual(expected)
        expect(await walk({ ...query, limit, time_desc: true })).toEqual([...expected].reverse())
      }
    },
  )

  it('refuses a cursor with another filter, order or session', async () => {
    const query = { kind: 'event', type: 'type-1', after_seq: 3, limit: 2 }
    const { next_cursor: cursor } = expectOk(await log.timeline(query))
    const others: Query[] = [
      { kind: undefined },
      { type: undefined },
      { type: 'type-2' },
      { after_seq: 4 },
      { after_seq: undefined },
      { time_desc: true },
    ]
    for (const other of others) {
      expectError(await log.timeline({ ...query, cursor, ...other }), 400, 'invalid_cursor')
    }
    expectOk(await log.timeline({ ...query, cursor, limit: 5 }))
    const elsewhere = await newSessionLog(api)
    expectError(await elsewhere.timeline({ ...query, cursor }), 400, 'invalid_cursor')
    expectError(await api.listEvents(log.id, { type: 'type-1', cursor }), 400, 'invalid_cursor')
  })

  it.each([
    'kind=note',
    'kind=',
    'type=',
    'after_seq=-1',
    'after_seq=x',
    'after_seq=1.5',
    'limit=0',
    'limit=1001',
    'time_desc=1',
    'kind=event&kind=message',
    'surprise=1',
  ])('refuses %s and names the parameter', async (query) => {
    const answer = await api.request('GET', `/api/v1/session/${log.id}/timeline?${query}`)
    expectError(answer, 400, 'invalid_request', query.split('=')[0]!)
  })

  it('of an unknown session is 404, and of a deleted one too', async () => {
    expectError(await sessionLog(api, NOBODYS_ID).timeline(), 404, 'session_not_found')
    const gone = await newSessionLog(api)
    expectOk(await gone.addEvent())
    expectOk(await api.deleteSession(gone.id))
    expectError(await gone.timeline(), 404, 'session_not_found')
  })

  it('walked while others append shows each entry that there was once', async () => {
    const own = await newSessionLog(api)
    expectOk(await own.batch(mixedEntries(30)), 201)
    const items = await walkPages(
      (cursor) => own.timeline({ limit: 5, cursor }),
      async (page) => {
        if (page[0]!.seq < 30) expectOk(await own.addEvent())
      },
    )
    expect(items.map((item) => item.seq)).toEqual(items.map((_, index) => index + 1))
    expect(items.length).toBeGreaterThanOrEqual(36)
  })
})
