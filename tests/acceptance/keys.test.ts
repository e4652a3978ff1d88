import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, type TimelineItem } from '../harness/session_log.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let api: ApiClient
beforeAll(async () => {
  api = await service.newClient()
})

const latest = (log: SessionLog, query?: Query, client = api) =>
  client.request<Page<TimelineItem>>('GET', `/api/v1/session/${log.id}/latest`, { query })
const addKeyed = async (log: SessionLog, key: string, n: number) =>
  expectOk(await api.appendEvent(log.id, { type: 'state', data: { n }, key }))
const shown = (items: TimelineItem[]) => items.map(({ key, data }) => [key, (data as { n: number }).n])

describe("an entry's key", () => {
  it('is shown with the entry wherever it is shown, and nowhere else', async () => {
    const log = await newSessionLog(api)
    const event = await addKeyed(log, 'plan', 1)
    const message = expectOk(await log.add({ role: 'user', content: 'a' }, { key: 'ask' }), 201)
    const { items } = expectOk(
      await log.batch([
        { kind: 'event', type: 'state', data: {}, key: 'plan' },
        { kind: 'message', blob: { role: 'user', content: 'b' }, key: 'ask' },
        { kind: 'event', type: 'state', data: {} },
      ]),
      201,
    )
    expect([event, message, ...items].map((entry) => (entry as { key?: string }).key)).toEqual([
      'plan',
      'ask',
      'plan',
      'ask',
      undefined,
    ])
    const timeline = expectOk(await log.timeline()).items
    expect(timeline.slice(2)).toEqual(items)
    expect(timeline[0]).toEqual({ kind: 'event', ...event })
    const events = expectOk(await api.listEvents(log.id)).items
    expect(events[0]).toEqual(event)
    expect(
      items
        .slice(-1)
        .concat(timeline.slice(-1))
        .filter((item) => 'key' in item),
    ).toEqual([])
  })

  it('belongs to what a retry must repeat: with another key an id or an idempotency key is refused', async () => {
    const log = await newSessionLog(api)
    const entry = { kind: 'event', type: 'state', data: {}, id: randomUUID(), key: 'a' }
    const first = expectOk(await log.batch([entry]), 201)
    expect(expectOk(await log.batch([entry]), 201)).toEqual(first)
    expectError(await log.batch([{ ...entry, key: 'b' }]), 422, 'idempotency_key_reused', '/entries/0/id')
    const headers = { 'Idempotency-Key': randomUUID() }
    const body = { type: 'state', data: {}, key: 'a' }
    const stored = expectOk(await api.appendEvent(log.id, body, { headers }))
    expect(expectOk(await api.appendEvent(log.id, body, { headers }))).toEqual(stored)
    expectError(
      await api.appendEvent(log.id, { ...body, key: 'b' }, { headers }),
      422,
      'idempotency_key_reused',
    )
  })

  it.each([
    ['', '/key'],
    ['x'.repeat(256), '/key'],
    [7, '/key'],
  ])('is refused as %j', async (key, place) => {
    const log = await newSessionLog(api)
    expectError(await api.appendEvent(log.id, { type: 'a', data: {}, key }), 400, 'invalid_request', place)
  })

  it('is kept by a copy', async () => {
    const log = await newSessionLog(api)
    await addKeyed(log, 'plan', 1)
    const { new_session_id } = expectOk(await log.copy())
    const copy = { ...log, id: new_session_id }
    expect(shown(expectOk(await latest(copy)).items)).toEqual([['plan', 1]])
  })
})

describe('the latest entries of a session', () => {
  it('are the newest of each key, in the order of keys, with a prefix, one key and pages, as a model has them', async () => {
    const names = fc.stringMatching(/^[a-cé😀"\\%]{1,3}$/u)
    const property = fc.asyncProperty(
      fc.array(names, { minLength: 1, maxLength: 30 }),
      names,
      fc.integer({ min: 1, max: 5 }),
      async (keys, prefix, limit) => {
        const log = await newSessionLog(api)
        const entries = keys.map((key, n) => ({ kind: 'event', type: 'state', data: { n }, key }))
        expectOk(await log.batch(entries), 201)
        const model = [...new Map(keys.map((key, n) => [key, n]))].sort(([a], [b]) =>
          Buffer.compare(Buffer.from(a), Buffer.from(b)),
        )
        const walk = (query: Query) => walkPages((cursor) => latest(log, { ...query, limit, cursor }))
        expect(shown(await walk({}))).toEqual(model)
        expect(shown(await walk({ key_prefix: prefix }))).toEqual(
          model.filter(([key]) => key.startsWith(prefix)),
        )
        expect(shown(await walk({ key: prefix }))).toEqual(model.filter(([key]) => key === prefix))
      },
    )
    await fc.assert(property, { numRuns: 12 })
  })

  it('are given whole, also where they are many megabytes together', async () => {
    const log = await newSessionLog(api)
    const keys = Array.from({ length: 9 }, (_, n) => `key ${n}`)
    for (const round of [1, 2])
      for (const key of keys)
        expectOk(
          await log.batch([
            { kind: 'event', type: 'state', key, data: { n: round, text: key.repeat(50_000) } },
          ]),
          201,
        )
    const newest = expectOk(await log.timeline({ after_seq: 9 })).items
    expect(expectOk(await latest(log)).items).toEqual(newest)
    expect(await walkPages((cursor) => latest(log, { limit: 4, cursor }))).toEqual(newest)
  })

  it('are on the pages of a walk once each while keys are written', async () => {
    const log = await newSessionLog(api)
    const keys = Array.from({ length: 40 }, (_, n) => `key ${String(n).padStart(2, '0')}`)
    const write = () => log.batch(keys.map((key, n) => ({ kind: 'event', type: 'state', data: { n }, key })))
    expectOk(await write(), 201)
    let isWalking = true
    const writer = (async () => {
      while (isWalking) expectOk(await write(), 201)
    })()
    for (let walks = 0; walks < 5; walks++) {
      const items = await walkPages((cursor) => latest(log, { limit: 7, cursor }))
      expect(items.map(({ key }) => key)).toEqual(keys)
    }
    isWalking = false
    await writer
  })

  it('of another project do not exist, and wrong parameters are refused by name', async () => {
    const log = await newSessionLog(api)
    await addKeyed(log, 'plan', 1)
    const stranger = await service.newClient()
    expectError(await latest(log, {}, stranger), 404, 'session_not_found')
    expectError(await latest(log, { key: 'a', key_prefix: 'b' }), 400, 'invalid_request', 'key_prefix')
    expectError(await latest(log, { key: '' }), 400, 'invalid_request', 'key')
    expectError(await latest(log, { limit: 201 }), 400, 'invalid_request', 'limit')
    const page = expectOk(await latest(log, { limit: 1 }))
    expect([page.has_more, page.next_cursor]).toEqual([false, ''])
    expectError(await latest(log, { cursor: 'abc' }), 400, 'invalid_cursor')
  })
})

describe('entries by their ids', () => {
  it('come in the order asked for, without those that the session does not have', async () => {
    const log = await newSessionLog(api)
    const other = await newSessionLog(api)
    const note = (n: number) => ({ kind: 'event', type: 'note', data: { n } })
    const elsewhere = expectOk(await other.batch([note(0)]), 201).items[0]!
    const { items } = expectOk(
      await log.batch([note(1), { kind: 'message', blob: { role: 'user', content: 'a' } }, note(3)]),
      201,
    )
    const [a, b, c] = items
    const ids = [c!.id.toUpperCase(), NOBODYS_ID, a!.id, elsewhere.id, b!.id]
    const page = expectOk(await log.timeline({ ids: ids.join(',') }))
    expect(page).toEqual({ items: [c, a, b], has_more: false, next_cursor: '' })
    expect(expectOk(await log.timeline({ ids: NOBODYS_ID })).items).toEqual([])
  })

  it('are given whole, also where they are many megabytes together', async () => {
    const log = await newSessionLog(api)
    const items: TimelineItem[] = []
    for (let n = 0; n < 5; n++)
      items.push(
        ...expectOk(
          await log.batch([{ kind: 'event', type: 'note', data: { text: `${n}`.repeat(800_000) } }]),
          201,
        ).items,
      )
    const wanted = items.toReversed()
    expect(expectOk(await log.timeline({ ids: wanted.map(({ id }) => id).join(',') })).items).toEqual(wanted)
  })

  it('are at most 200 UUIDs, alone, in a session of the project', async () => {
    const log = await newSessionLog(api)
    const ids = Array.from({ length: 200 }, () => randomUUID())
    expect(expectOk(await log.timeline({ ids: ids.join(',') })).items).toEqual([])
    for (const wrong of [[...ids, NOBODYS_ID].join(','), '', `${NOBODYS_ID},`, 'x', `${NOBODYS_ID},x`])
      expectError(await log.timeline({ ids: wrong }), 400, 'invalid_request', 'ids')
    expectError(await log.timeline({ ids: NOBODYS_ID, limit: 5 }), 400, 'invalid_request', 'limit')
    const stranger = await service.newClient()
    const path = `/api/v1/session/${log.id}/timeline`
    expectError(await stranger.request('GET', path, { query: { ids: NOBODYS_ID } }), 404, 'session_not_found')
  })
})
