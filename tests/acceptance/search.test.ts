import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import {
  type Found,
  newSearchingProjects,
  placeOf,
  placesOf,
  search,
  switchSearch,
  untilIndexed,
} from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

/* Search across sessions, through two nodes. */

/** Matches of a word: more than order=relevance ranks at once. */
const MANY = 230

const service = useSharedService()
const admin = () => service.adminClient()
let project: Project
/** Of the same project, at two nodes. */
let api: ApiClient
let other: ApiClient

const use = async (chosen: Project) => {
  project = chosen
  api = await service.newClient({ token: project.token })
  other = await service.newClient({ token: project.token, node: service.secondNode })
}
/** For most tests: see newSearchingProjects. */
const searching: Project[] = []
const useSearching = () => use(searching.pop()!)

beforeAll(async () => void searching.push(...(await newSearchingProjects(service, 9))))
beforeEach(async () => use(await service.newProject()))

const newSession = async (body: unknown = {}) => expectOk(await api.createSession(body), 201).id
const note = async (session: string, text: string, type = 'note') => {
  const { seq } = expectOk(await api.appendEvent(session, { type, data: { text } }))
  return `${session} ${seq}`
}
const notes = async (session: string, count: number, text: string) => {
  const said = Array.from({ length: count }, (_, n) => ({ text: text + n }))
  const entries = said.map((data) => ({ kind: 'event', type: 'note', data }))
  expectOk(await api.request('POST', `/api/v1/session/${session}/entries`, { body: { entries } }), 201)
}
const say = async (session: string, role: string, content: string) => {
  const body = { format: 'openai', blob: { role, content } }
  const { seq } = expectOk(
    await api.request<{ seq: number }>('POST', `/api/v1/session/${session}/messages`, { body }),
    201,
  )
  return `${session} ${seq}`
}
const fold = async (session: string, text: string, noise: unknown) => {
  const { seq } = expectOk(await api.appendEvent(session, { type: 'progress', data: { text, noise } }))
  return `${session} ${seq}`
}
const on = () => switchSearch(admin(), project.id, true)
const found = (q: string, query: Query = {}) => placesOf(api, q, query)
const walk = (q: string, query: Query = {}) =>
  walkPages<Found>((cursor) => search(api, q, { ...query, cursor }))
const INDEXED =
  'SELECT coalesce(sum(last_seq - seq + 1), 0) AS entries FROM search_entries WHERE project_id = $1'
const indexedEntries = async () =>
  Number((await queryRows(service.databaseUrl, INDEXED, [project.id]))[0]!.entries)

describe('search', () => {
  it('finds what was there before it was switched on, and what a node stores that has not heard of it', async () => {
    const session = await newSession()
    const first = await say(session, 'user', 'Where is my refund?')
    expectOk(await other.getSession(session))
    await on()
    const begun = { items: [{ seq: 1 }], indexed_through: null, indexing: { sessions_done: 1, sessions: 1 } }
    await vi.waitFor(async () => expect(expectOk(await search(api, 'refund'))).toMatchObject(begun), 20_000)
    const data = { text: 'Refund was paid' }
    const { seq, created_at } = expectOk(await other.appendEvent(session, { type: 'note', data }))
    await untilIndexed(api, created_at)
    for (const one of [api, other])
      expect(await placesOf(one, 'refund')).toEqual([`${session} ${seq}`, first])
    const { items } = expectOk(await search(api, 'REFUND -paid'))
    expect(items).toMatchObject([
      { kind: 'message', role: 'user', snippet: { text: 'Where is my refund?', hits: [[12, 18]] } },
    ])
    expect(items[0]).not.toHaveProperty('type')
  })

  it('finds a word, a phrase, a prefix and writing without spaces, in messages and tools alike', async () => {
    await useSearching()
    const session = await newSession()
    const call = {
      id: 'c1',
      type: 'function',
      function: { name: 'get_seat_map', arguments: '{"flight":"HAT083"}' },
    }
    const body = { format: 'openai', blob: { role: 'assistant', content: null, tool_calls: [call] } }
    const { seq } = expectOk(
      await api.request<{ seq: number }>('POST', `/api/v1/session/${session}/messages`, { body }),
      201,
    )
    const called = `${session} ${seq}`
    const japanese = await note(session, '東京都庁に行く')
    const english = await note(session, 'the map of the seat')
    await untilIndexed(api)
    for (const q of ['get_seat_map', 'HAT083', '"seat map"', 'get_se*'])
      expect(await found(q), q).toEqual([called])
    for (const q of ['東京', '京都', '都庁に', '行*']) expect(await found(q), q).toEqual([japanese])
    expect(await found('seat map')).toEqual([english, called])
    expect(await found('seat -"seat map"')).toEqual([english])
    expect(await found('"map seat"')).toEqual([])
  })

  it('leaves out what views fold where that is asked for, page by page', async () => {
    await useSearching()
    const session = await newSession()
    const said = await say(session, 'user', 'a refund of noise: true')
    const kept = await fold(session, 'refund', 'true')
    const folded = [await fold(session, 'refund', true), await fold(session, 'refund', true)]
    const later = await note(session, 'refund')
    await untilIndexed(api)
    expect(await found('refund')).toEqual([later, ...folded.toReversed(), kept, said])
    for (const order of ['newest', 'relevance'])
      expect((await found('refund', { noise: 'false', order })).toSorted()).toEqual(
        [said, kept, later].toSorted(),
      )
    const walked = await walk('refund', { noise: 'false', limit: 1 })
    expect(walked.map(placeOf)).toEqual([later, kept, said])
    const asked = await search(api, 'refund', { mode: 'recall', noise: 'false' })
    expectError(asked, 400, 'invalid_request', 'noise')
  })

  it('is narrowed by user, configs, session, kind, type, role and time, alone and together', async () => {
    await useSearching()
    const [ada, bob] = [
      await newSession({ user: 'ada', configs: { a: 1 } }),
      await newSession({ user: 'bob', configs: { a: 1, b: 2 } }),
    ]
    const nobody = await newSession()
    const places = {
      ada_event: await note(ada, 'refund', 'x'),
      ada_user: await say(ada, 'user', 'refund'),
      bob_assistant: await say(bob, 'assistant', 'refund'),
      bob_event: await note(bob, 'refund', 'y'),
      nobody_event: await note(nobody, 'refund', 'x'),
    }
    await untilIndexed(api)
    const timeOf = async (place: string) =>
      expectOk(await search(api, 'refund')).items.find((item) => placeOf(item) === place)!.created_at
    const cases: Array<[Query, Array<keyof typeof places>]> = [
      [{ user: 'ada' }, ['ada_user', 'ada_event']],
      [{ user: 'eve' }, []],
      [{ filter_by_configs: '{"a":1}' }, ['bob_event', 'bob_assistant', 'ada_user', 'ada_event']],
      [{ filter_by_configs: '{"b":2}' }, ['bob_event', 'bob_assistant']],
      [{ filter_by_configs: '{"b":3}' }, []],
      [{ filter_by_configs: '{}', session_id: ada }, ['ada_user', 'ada_event']],
      [{ filter_by_configs: '{"a":1}', session_id: nobody }, []],
      [{ session_id: NOBODYS_ID }, []],
      [{ kind: 'message' }, ['bob_assistant', 'ada_user']],
      [{ kind: 'event' }, ['nobody_event', 'bob_event', 'ada_event']],
      [{ type: 'x' }, ['nobody_event', 'ada_event']],
      [{ type: 'x', user: 'ada', filter_by_configs: '{"a":1}' }, ['ada_event']],
      [{ role: 'assistant' }, ['bob_assistant']],
      [{ role: 'assistant', kind: 'event' }, []],
      [{ from: await timeOf(places.bob_assistant) }, ['nobody_event', 'bob_event', 'bob_assistant']],
      [{ to: await timeOf(places.bob_assistant) }, ['bob_assistant', 'ada_user', 'ada_event']],
    ]
    for (const [query, names] of cases)
      expect(await found('refund', query), JSON.stringify(query)).toEqual(names.map((name) => places[name]))
  })

  it('shows each entry once in a walk, the newest first, and its cursor belongs to its query', async () => {
    await useSearching()
    const session = await newSession()
    await notes(session, MANY, 'refund ')
    const last = await note(await newSession(), 'another refund')
    await untilIndexed(api)
    const seqs = Array.from({ length: MANY }, (_, n) => `${session} ${MANY - n}`)
    for (const order of ['newest', 'relevance'])
      for (const limit of [7, 50, 200]) {
        const places = (await walk('refund', { limit, order })).map(placeOf)
        if (order === 'newest') expect(places).toEqual([last, ...seqs])
        else expect(places.toSorted()).toEqual([last, ...seqs].toSorted())
      }
    const { next_cursor: cursor } = expectOk(await search(api, 'refund', { limit: 7 }))
    for (const query of [{ order: 'relevance' }, { kind: 'event' }, { session_id: session }])
      expectError(await search(api, 'refund', { ...query, cursor }), 400, 'invalid_cursor')
    expectError(await search(api, 'refunds', { cursor }), 400, 'invalid_cursor')
    const stranger = await service.newProject()
    await switchSearch(admin(), stranger.id, true)
    const theirs = await service.newClient({ token: stranger.token })
    expectError(await search(theirs, 'refund', { cursor }), 400, 'invalid_cursor')
  })

  it('by relevance begins with what is most about the words', async () => {
    await useSearching()
    const session = await newSession()
    const best = await note(session, 'refund refund refund')
    const good = await note(session, 'a refund')
    const poor = await note(session, `refund ${'and many other words '.repeat(100)}`)
    await untilIndexed(api)
    expect(await found('refund', { order: 'relevance' })).toEqual([best, good, poor])
  })

  it('does not find what was retracted, deleted or erased, from the answer on', async () => {
    await useSearching()
    const [kept, gone, erased] = [await newSession(), await newSession(), await newSession({ user: 'ada' })]
    const places = [
      await note(kept, 'refund'),
      await note(kept, 'refund'),
      await note(gone, 'refund'),
      await note(erased, 'refund'),
    ]
    await untilIndexed(api)
    expect(await found('refund')).toEqual(places.toReversed())
    expectOk(await api.request('POST', `/api/v1/session/${kept}/retractions`, { body: { last: 1 } }))
    expect(await found('refund')).toEqual([places[3], places[2], places[0]])
    expectOk(await api.deleteSession(gone))
    expect(await found('refund')).toEqual([places[3], places[0]])
    expectOk(await api.request('DELETE', '/api/v1/user/ada'))
    expect(await found('refund')).toEqual([places[0]])
    // The log of `kept` has its retraction as well.
    await vi.waitFor(async () => expect(await indexedEntries()).toBe(3), { timeout: 20_000 })
  })

  it('finds a summary until something that it covers is retracted', async () => {
    await useSearching()
    const session = await newSession()
    await note(session, 'ticket')
    await say(session, 'user', 'Hello')
    const body = { to_seq: 2, summary: { blob: { role: 'user', content: 'A refund for a ticket.' } } }
    expectOk(await api.request('POST', `/api/v1/session/${session}/compactions`, { body }), 201)
    await untilIndexed(api)
    expect(await found('refund')).toEqual([`${session} 3`])
    const id = expectOk(await api.listEvents(session)).items[0]!.id
    expectOk(await api.request('POST', `/api/v1/session/${session}/retractions`, { body: { ids: [id] } }))
    expect(await found('refund')).toEqual([])
  })

  it('finds every entry of a session that grows bit by bit, the newest first between those of another', async () => {
    await useSearching()
    const sessions = [await newSession(), await newSession()]
    const places: string[] = []
    for (let n = 0; n < 19; n++) places.unshift(await note(sessions[n % 7 === 0 ? 1 : 0]!, `refund n${n}`))
    await untilIndexed(api)
    for (let n = 19; n < 24; n++) {
      places.unshift(await note(sessions[0]!, `refund n${n}`))
      await untilIndexed(api)
    }
    expect(await found('refund')).toEqual(places)
    expect((await walk('refund', { limit: 5 })).map(placeOf)).toEqual(places)
    expect(await found('refund -n3 n2*')).toEqual([...places.slice(0, 4), places[21]])
    expect(await indexedEntries()).toBe(24)
  })

  it('finds the entries of forks, and those of a log that is longer than one piece of work', async () => {
    await useSearching()
    const session = await newSession()
    await notes(session, 900, 'n')
    const { new_session_id: fork } = expectOk(
      await api.request<{ new_session_id: string }>('POST', `/api/v1/session/${session}/copy`, {
        body: { up_to_seq: 10 },
      }),
    )
    await untilIndexed(api)
    expect((await found('n7')).toSorted()).toEqual([`${session} 8`, `${fork} 8`].toSorted())
    expect(await found('n899')).toEqual([`${session} 900`])
    expect(await indexedEntries()).toBe(910)
  })

  it('switched off deletes the index, and switched on again finds everything', async () => {
    const session = await newSession()
    const place = await note(session, 'refund')
    await on()
    await untilIndexed(api)
    await switchSearch(admin(), project.id, false)
    expectError(await search(other, 'refund'), 409, 'search_off')
    await switchSearch(admin(), project.id, true)
    await switchSearch(admin(), project.id, null)
    await vi.waitFor(async () => expect(await indexedEntries()).toBe(0), { timeout: 30_000 })
    await on()
    await untilIndexed(api)
    expect(await found('refund')).toEqual([place])
  })
})
