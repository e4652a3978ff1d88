import { beforeEach, describe, expect, it } from 'vitest'
import { Cursors } from '../../packages/kits/src/http/answer/page_answer.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { search, switchSearch, untilIndexed } from '../harness/search.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

/* Searches that are refused, or find nothing. */

const service = useSharedService()
const REPEATED = 'a '.repeat(33)
/** One word more than a query may have. */
const MANY = Array.from({ length: 33 }, (_, n) => `w${n}`).join(' ')
let api: ApiClient
let switchOn: () => Promise<void>

beforeEach(async () => {
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  switchOn = () => switchSearch(service.adminClient(), project.id, true)
})

describe('search', () => {
  it('is refused until it is switched on, and says how that is done', async () => {
    for (const mode of ['words', 'recall'])
      expectError(
        await search(api, 'refund', { mode }),
        409,
        'search_off',
        'annals project set',
        '--search on',
      )
  })

  it('of a project without any session is empty', async () => {
    await switchOn()
    const { items, has_more, next_cursor } = expectOk(
      await search(api, 'refund', { filter_by_configs: '{"a":1}' }),
    )
    const nothing = { items: [], has_more: false, next_cursor: '' }
    expect({ items, has_more, next_cursor }).toEqual(nothing)
    expect(expectOk(await search(api, 'refund', { mode: 'recall' }))).toMatchObject(nothing)
  })

  it.each<[Query, string]>([
    [{ q: '' }, 'q'],
    [{ q: '-paid' }, 'q'],
    [{ q: REPEATED }, '32 words'],
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
    [{ q: MANY }, '32 words'],
    [{ q: `"${MANY}"` }, '32 words'],
    [{ q: `x -"${MANY} ${MANY}"` }, '32 words'],
  ])('refuses %j, as words and as a question', async (query, word) => {
    // A word of a question counts once.
    const modes = query.q === REPEATED ? ['words'] : ['words', 'recall']
    for (const mode of modes)
      expectError(
        await api.request('GET', '/api/v1/search', { query: { q: 'x', mode, ...query } }),
        400,
        'invalid_request',
        word,
      )
  })

  it('reads signs of the query language of the database as signs, in a query and in filters', async () => {
    await switchOn()
    const type = `a'b\\c:*`
    const log = await newSessionLog(api, { user: "o'\\" })
    expectOk(await log.addEvent(type, { text: 'the kettle boils' }))
    await untilIndexed(api)
    const kettle = [
      "kettle'",
      'kettle\\',
      "'kettle':*",
      'kettle & !',
      '(kettle',
      '<-> kettle',
      '~kettle',
      '#kettle',
    ]
    const nothing = [
      "tea' | 'pot",
      'tea\0',
      '$1',
      '%',
      '@',
      '=',
      "'; DROP TABLE entries; --",
      '\u202Etea',
      'ﷺ'.repeat(200),
    ]
    const long = ['x', '東', 'क', 'ﬃ', '"', '-', '*', 'y-'].map((sign) => sign.repeat(1024 / sign.length))
    long.push('a\u0301'.repeat(512), '𐐀'.repeat(512))
    for (const mode of ['words', 'recall']) {
      const found = async (q: string, query: Query = {}) => {
        const { status, json, text } = await search(api, q, { mode, group: 'entry', ...query })
        // A query without a word.
        if (status === 400) expect(text, q).toContain('Query parameter q ')
        else expect(status, q).toBe(200)
        return status === 200 ? json.data.items.map(({ seq }) => seq) : []
      }
      for (const q of kettle) expect(await found(q), q).toEqual([1])
      for (const q of [...nothing, ...long]) expect(await found(q), q.slice(0, 20)).toEqual([])
      expect(await found('kettle', { type, user: "o'\\", kind: 'event' })).toEqual([1])
      for (const other of ['a', `a'b\\c:`, "a' | 'b", '*'])
        expect(await found('kettle', { type: other }), other).toEqual([])
      for (const role of ["'", '\\', "user' | 'x"]) expect(await found('kettle', { role }), role).toEqual([])
      expect(await found('kettle', { user: "o' OR true" })).toEqual([])
    }
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
