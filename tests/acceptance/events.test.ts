import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient, Session, SessionEvent } from '../harness/api_client.ts'
import { expectError, expectOk, TIMESTAMP, UUID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
let session: Session

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

beforeEach(async () => {
  session = expectOk(await api.createSession({}), 201)
})

async function append(
  count: number,
  typeOf: (index: number) => string = () => 'note',
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = []
  for (let index = 0; index < count; index += 1) {
    events.push(expectOk(await api.appendEvent(session.id, { type: typeOf(index), data: { index } })))
  }
  return events
}

describe('appending an event', () => {
  it('answers 200 and the event with its seq', async () => {
    const data = { tool: 'search', arguments: { q: 'x' }, ok: true, none: null, list: [1, 'a'] }
    const event = expectOk(await api.appendEvent(session.id, { type: 'tool_call', data }))
    expect(event).toEqual({
      id: expect.stringMatching(UUID),
      project_id: project.id,
      session_id: session.id,
      type: 'tool_call',
      data,
      seq: 1,
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: event.created_at,
    })
  })

  it('numbers the events of a session from 1, without gaps, whatever happens in others', async () => {
    const other = expectOk(await api.createSession({}), 201)
    for (let seq = 1; seq <= 5; seq += 1) {
      expect(expectOk(await api.appendEvent(session.id, { type: 'a', data: {} })).seq).toBe(seq)
      expect(expectOk(await api.appendEvent(other.id, { type: 'a', data: {} })).seq).toBe(seq)
    }
  })

  it('that is refused uses up no seq', async () => {
    await append(1)
    expectError(
      await api.appendEvent(session.id, { type: 'a', data: { x: '\u0000' } }),
      400,
      'invalid_request',
    )
    expectError(await api.appendEvent(session.id, { type: 'a' }), 400, 'invalid_request')
    expect((await append(1))[0]!.seq).toBe(2)
  })

  it("moves the session's updated_at and nothing else of it", async () => {
    const [event] = await append(1)
    const after = expectOk(await api.getSession(session.id))
    expect(after.updated_at > session.updated_at).toBe(true)
    expect(after.updated_at >= event!.created_at).toBe(true)
    expect({ ...after, updated_at: session.updated_at }).toEqual(session)
    const listed = expectOk(await api.listSessions({ time_desc: true, limit: 1 })).items
    expect(listed).toEqual([after])
  })

  it.each<[string, unknown, string]>([
    ['no type', { data: {} }, 'type'],
    ['no data', { type: 'a' }, 'data'],
    ['a type that is a number', { type: 1, data: {} }, 'type'],
    ['a type that is null', { type: null, data: {} }, 'type'],
    ['data that is an array', { type: 'a', data: [] }, 'data'],
    ['data that is a string', { type: 'a', data: '{}' }, 'data'],
    ['data that is null', { type: 'a', data: null }, 'data'],
    ['data that is a number', { type: 'a', data: 5 }, 'data'],
    ['U+0000 in the type', { type: 'a\u0000b', data: {} }, 'type'],
    ['a lone surrogate in the type', { type: '\ud800', data: {} }, 'type'],
  ])('with %s is refused and names the field', async (_case, body, field) => {
    expectError(await api.appendEvent(session.id, body), 400, 'invalid_request', field)
  })

  it('takes any text as its type', async () => {
    for (const type of ['tool_call', 'a.b/c', 'mit Leerzeichen', '😀', "'", '__proto__']) {
      const event = expectOk(await api.appendEvent(session.id, { type, data: {} }))
      expect(event.type).toBe(type)
      expect(expectOk(await api.listEvents(session.id, { type })).items).toEqual([event])
    }
  })
})

describe('listing events', () => {
  it('returns them in the order of their seq, as they were answered', async () => {
    const events = await append(5)
    const page = expectOk(await api.listEvents(session.id))
    expect(page).toEqual({ items: events, has_more: false, next_cursor: '' })
    const times = events.map((event) => event.created_at)
    expect([...times].sort()).toEqual(times)
    const newestFirst = expectOk(await api.listEvents(session.id, { time_desc: true }))
    expect(newestFirst.items).toEqual([...events].reverse())
  })

  it('returns 50 when no limit is asked for, and more if asked for', async () => {
    const events = await append(52)
    const page = expectOk(await api.listEvents(session.id))
    expect(page.items).toEqual(events.slice(0, 50))
    expect(page.has_more).toBe(true)
    expect(expectOk(await api.listEvents(session.id, { limit: 200 })).items).toEqual(events)
  })

  it('returns an empty list for a session without events', async () => {
    expect(expectOk(await api.listEvents(session.id))).toEqual({
      items: [],
      has_more: false,
      next_cursor: '',
    })
  })

  it('walks page by page in both directions, all or those of one type', async () => {
    const events = await append(23, (index) => (index % 3 ? 'message' : 'tool_call'))
    for (const type of [undefined, 'message', 'tool_call', 'none']) {
      const matching = events.filter((event) => type === undefined || event.type === type)
      for (const time_desc of [false, true]) {
        const expected = time_desc ? [...matching].reverse() : matching
        const walked = await walkPages((cursor) =>
          api.listEvents(session.id, { type, limit: 4, time_desc, cursor }),
        )
        expect(walked).toEqual(expected)
      }
    }
  })

  it('finds what was appended after the cursor', async () => {
    await append(3)
    const { next_cursor } = expectOk(await api.listEvents(session.id, { limit: 2 }))
    await append(2)
    const rest = expectOk(await api.listEvents(session.id, { cursor: next_cursor }))
    expect(rest.items.map((event) => event.seq)).toEqual([3, 4, 5])
  })
})

describe('a parameter of the event list', () => {
  const list = (query: string) => api.request('GET', `/api/v1/session/${session.id}/events${query}`)

  it.each(['0', '1001', '-1', '1.5', 'x', ''])('limit=%s is refused and named', async (value) => {
    expectError(await list(`?limit=${value}`), 400, 'invalid_request', 'limit', '1', '1000')
  })

  it.each(['time_desc=1', 'time_desc=', 'user=a', 'filter_by_configs=%7B%7D', 'Type=a', 'after=1'])(
    'that does not fit is refused and named: %s',
    async (pair) => {
      expectError(await list(`?${pair}`), 400, 'invalid_request', pair.slice(0, pair.indexOf('=')))
    },
  )

  it.each(['limit=5', 'type=a', 'time_desc=true', 'cursor=x'])(
    'given twice is refused and named: %s',
    async (pair) => {
      expectError(await list(`?${pair}&${pair}`), 400, 'invalid_request', pair.slice(0, pair.indexOf('=')))
    },
  )

  it('that is a cursor of another session, type or direction is refused', async () => {
    await append(4)
    const { next_cursor: cursor } = expectOk(await api.listEvents(session.id, { limit: 2 }))
    const other = expectOk(await api.createSession({}), 201)
    const refused = [
      api.listEvents(other.id, { cursor }),
      api.listEvents(session.id, { cursor, type: 'note' }),
      api.listEvents(session.id, { cursor, time_desc: true }),
      api.listEvents(session.id, { cursor: cursor.slice(0, -1) }),
      api.listEvents(session.id, { cursor: `A${cursor}` }),
    ]
    for (const answer of refused) expectError(await answer, 400, 'invalid_cursor', 'cursor')
    expectOk(await api.listEvents(session.id, { cursor, limit: 1 }))
  })
})
