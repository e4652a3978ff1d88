import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog, walkMessages } from '../harness/session_log.ts'

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const say = (content: string) => ({
  kind: 'message',
  blob: { role: 'user', content },
  meta: { said: content },
})
const happen = (type: string) => ({ kind: 'event', type, data: {} })

/** A session of the given entries: `m…` a message, `e…` an event. */
async function sessionOf(...names: string[]): Promise<SessionLog> {
  const log = await newSessionLog(api)
  for (let from = 0; from < names.length; from += 1_000) {
    const entries = names
      .slice(from, from + 1_000)
      .map((name) => (name.startsWith('m') ? say(name) : happen(name)))
    expectOk(await log.batch(entries), 201)
  }
  return log
}
const contents = (items: Array<Record<string, unknown>>) => items.map((item) => item.content)
const names = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

describe('a list of messages', () => {
  it('of a whole session holds every message, with ids and metas in step', async () => {
    const all = names(1_500)
    const log = await sessionOf(...all)
    const page = expectOk(await log.list())
    expect(contents(page.items)).toEqual(all)
    expect(page.metas).toEqual(all.map((said) => ({ said })))
    expect(page.edit_at_message_id).toBe(page.ids.at(-1))
    expect(expectOk(await log.list({ limit: 0 }))).toEqual(page)
    expect(new Set(page.ids).size).toBe(1_500)
    expect([page.has_more, page.next_cursor]).toEqual([false, ''])
    expect(page).not.toHaveProperty('events')
    expect(expectOk(await log.list({ time_desc: true })), 'one page reads oldest to newest').toEqual(page)
    expect(page.this_time_tokens).toBe(expectOk(await log.tokens()).total_tokens)
  })

  it.each([1, 3, 7, 200])('is walked in pages of %i in both directions, each message once', async (limit) => {
    const log = await sessionOf('e', ...names(10), 'e', 'e', 'm10', 'e')
    const whole = expectOk(await log.list())
    for (const time_desc of [false, true]) {
      const pages = await walkMessages(log, { limit, time_desc })
      const inOrder = time_desc ? pages.toReversed() : pages
      expect(inOrder.flatMap((page) => page.ids)).toEqual(whole.ids)
      for (const page of pages) {
        expect(page.items.length).toBeLessThanOrEqual(limit)
        expect([page.ids.length, page.metas.length]).toEqual([page.items.length, page.items.length])
        expect(contents(page.items)).toEqual(page.metas.map((meta) => meta.said))
        expect(page.edit_at_message_id).toBe(page.ids.at(-1))
        if (!page.has_more) expect(page.next_cursor).toBe('')
      }
      expect(pages).toHaveLength(Math.ceil(11 / limit))
    }
  })

  it('continues after its cursor while messages are appended', async () => {
    const log = await sessionOf(...names(4))
    const first = expectOk(await log.list({ limit: 2 }))
    expectOk(await log.batch([say('m4'), say('m5')]), 201)
    const rest = expectOk(await log.list({ limit: 200, cursor: first.next_cursor }))
    expect(contents(rest.items)).toEqual(['m2', 'm3', 'm4', 'm5'])
  })

  it('refuses a cursor of another format, order, with_events or session, and a damaged one', async () => {
    const log = await sessionOf(...names(4))
    const other = await sessionOf(...names(4))
    const { next_cursor: cursor } = expectOk(await log.list({ limit: 1 }))
    for (const query of [{ format: 'anthropic' }, { time_desc: true }, { with_events: true }])
      expectError(await log.list({ limit: 1, cursor, ...query }), 400, 'invalid_cursor')
    expectError(await other.list({ limit: 1, cursor }), 400, 'invalid_cursor')
    expectError(await log.list({ limit: 1, cursor: `${cursor}x` }), 400, 'invalid_cursor')
    expectOk(await log.list({ limit: 3, cursor }))
  })

  it.each([
    'limit=-1',
    'limit=1001',
    'limit=x',
    'format=cohere',
    'time_desc=1',
    'with_events=yes',
    'surprise=1',
  ])('refuses %s and names it', async (query) => {
    const log = await sessionOf('m')
    const answer = await api.request('GET', `/api/v1/session/${log.id}/messages?${query}`)
    expectError(answer, 400, 'invalid_request', query.split('=')[0]!)
  })

  it('of an empty session is empty', async () => {
    const page = expectOk(await (await newSessionLog(api)).list({ with_events: true }))
    expect(page).toEqual({
      items: [],
      ids: [],
      metas: [],
      has_more: false,
      next_cursor: '',
      edit_at_message_id: '',
      this_time_tokens: 0,
      events: [],
    })
  })
})

describe('a list with events', () => {
  const types = (events: Array<{ type: string }> = []) => events.map((event) => event.type)
  const story = ['e1', 'e2', 'm3', 'e4', 'e5', 'm6', 'm7', 'e8', 'e9']

  it('holds those ahead of the first message, between messages and after the last', async () => {
    const log = await sessionOf(...story)
    const page = expectOk(await log.list({ with_events: true }))
    expect(types(page.events)).toEqual(['e1', 'e2', 'e4', 'e5', 'e8', 'e9'])
    expect(page.events).toEqual(expectOk(await api.listEvents(log.id)).items)
  })

  it.each([
    [1, false],
    [1, true],
    [2, false],
    [2, true],
    [200, true],
  ])('shows each event on exactly one page of %i, time_desc %s', async (limit, time_desc) => {
    const log = await sessionOf(...story)
    const pages = await walkMessages(log, { limit, time_desc, with_events: true })
    expect(pages.flatMap((page) => types(page.events)).sort()).toEqual(['e1', 'e2', 'e4', 'e5', 'e8', 'e9'])
    const [first, last] = [types(pages.at(0)!.events), types(pages.at(-1)!.events)]
    expect(time_desc ? last : first).toEqual(expect.arrayContaining(['e1', 'e2']))
    expect(time_desc ? first : last).toEqual(expect.arrayContaining(['e8', 'e9']))
    const place = (type: string) => pages.findIndex((page) => types(page.events).includes(type))
    const pageOf = (said: string) => pages.findIndex((page) => contents(page.items).includes(said))
    for (const between of ['e4', 'e5']) expect([pageOf('m3'), pageOf('m6')]).toContain(place(between))
  })

  it('of a session without messages holds all of its events', async () => {
    const log = await sessionOf('e1', 'e2')
    for (const query of [{}, { limit: 1 }, { time_desc: true }]) {
      const page = expectOk(await log.list({ with_events: true, ...query }))
      expect([page.items, types(page.events).sort(), page.has_more]).toEqual([[], ['e1', 'e2'], false])
    }
  })

  it('keeps more events than a page has messages', async () => {
    const log = await sessionOf(...Array.from({ length: 900 }, () => 'e'), 'm')
    expect(expectOk(await log.list({ limit: 1, with_events: true })).events).toHaveLength(900)
  })
})

describe('token counts', () => {
  it('are those of o200k_base, grow with messages and not with events, and are the sum of the pages', async () => {
    const log = await newSessionLog(api)
    expect(expectOk(await log.tokens())).toEqual({ total_tokens: 0, counted: 'all' })
    expectOk(await log.add({ role: 'user', content: 'hello world' }), 201)
    expect(expectOk(await log.tokens())).toEqual({ total_tokens: 2, counted: 'all' })
    expectOk(await log.addEvent('note', { text: 'hello world' }))
    expect(expectOk(await log.tokens())).toEqual({ total_tokens: 2, counted: 'all' })
    const call = { id: 'c', type: 'function', function: { name: 'lookup', arguments: '{"a":"hello world"}' } }
    expectOk(await log.add({ role: 'assistant', content: null, tool_calls: [call] }), 201)
    const withCall = expectOk(await log.tokens()).total_tokens
    expect(withCall).toBeGreaterThan(2)
    expectOk(await log.add({ role: 'tool', tool_call_id: 'c', content: 'hello world' }), 201)
    const total = expectOk(await log.tokens()).total_tokens
    expect(total).toBeGreaterThanOrEqual(withCall + 2)
    for (const format of ['openai', 'anthropic', 'gemini', 'acontext', 'responses']) {
      const pages = await walkMessages(log, { limit: 1, format })
      expect(
        pages.reduce((sum, page) => sum + page.this_time_tokens, 0),
        format,
      ).toBe(total)
    }
    expect(expectOk(await log.list({ limit: 1 })).this_time_tokens).toBe(2)
  })

  it('of an unknown session are 404', async () => {
    expectError(await sessionLog(api, NOBODYS_ID).tokens(), 404, 'session_not_found')
  })
})
