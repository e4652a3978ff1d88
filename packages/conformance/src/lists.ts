import { randomUUID } from 'node:crypto'
import { must, mustEqual, repeat, upTo } from './expectations.js'
import type { Promised, Trial } from './promise.js'
import { type Page, refused, type Session } from './server.js'

const CONFIGS = {
  first: { agent: 'x', n: 1, tags: ['a', 'b'], deep: { k: { v: true } } },
  second: { agent: 'X', n: '1', tags: ['b'], deep: { k: { v: 'true' }, l: [{ m: 1, o: 2 }] } },
  third: { agent: null, n: 9007199254740991 },
}
const FILTERS: Array<[filter: string, expected: string[]]> = [
  ['{}', ['first', 'second', 'third']],
  ['{"agent":"x"}', ['first']],
  ['{"agent":null}', ['third']],
  ['{"n":1.0}', ['first']],
  ['{"n":"1"}', ['second']],
  ['{"n":9007199254740992}', []],
  ['{"tags":["b"]}', ['first', 'second']],
  ['{"tags":["b","a","b"]}', ['first']],
  ['{"tags":[]}', ['first', 'second']],
  ['{"tags":"b"}', []],
  ['{"deep":{"k":{}}}', ['first', 'second']],
  ['{"deep":{"k":{"v":true}}}', ['first']],
  ['{"deep":{"l":[{"o":2}]}}', ['second']],
  ['{"Agent":"x"}', []],
]

type Query = Record<string, string | number | boolean>

async function walk({ server }: Trial, query: Query, between: () => Promise<unknown>): Promise<string[]> {
  const ids: string[] = []
  const limit = Number(query.limit)
  for (let cursor = ''; ; await between()) {
    const asked = { ...query, ...(cursor === '' ? {} : { cursor }) }
    const page = await server.ok<Page<Session>>('GET', '/session', { query: asked })
    ids.push(...page.items.map(({ id }) => id))
    must(new Set(ids).size === ids.length, 'A walk met a session twice.')
    must(page.items.length <= limit, `A page with limit=${limit} has ${page.items.length} items.`)
    must(page.has_more === (page.next_cursor !== ''), 'has_more and next_cursor contradict each other.')
    if (!page.has_more) return ids
    cursor = page.next_cursor
  }
}

export const LISTS: Promised[] = [
  {
    name: 'containment',
    promise:
      'filter_by_configs finds exactly the sessions whose configs contain it: nested, by type and by case.',
    reference: 'api.md#lists',
    async check({ server, newLog, newUser }) {
      const user = newUser()
      const names = new Map<string, string>()
      for (const [name, configs] of Object.entries(CONFIGS))
        names.set((await newLog({ user, configs })).id, name)
      for (const [filter_by_configs, expected] of FILTERS) {
        const query = { user, filter_by_configs }
        const { items } = await server.ok<Page<Session>>('GET', '/session', { query })
        mustEqual(
          items.map(({ id }) => names.get(id)),
          expected,
          `What ${filter_by_configs} found`,
        )
      }
      for (const filter_by_configs of ['[]', '"x"', '{', '']) {
        const answer = await server.send('GET', '/session', { query: { user, filter_by_configs } })
        refused(
          answer,
          400,
          'invalid_request',
          `The filter ${JSON.stringify(filter_by_configs)} is not a JSON object`,
        )
      }
    },
  },
  {
    name: 'cursors',
    promise:
      'A walk by cursors shows each item that exists throughout exactly once; a cursor fits one query only.',
    reference: 'api.md#lists',
    async check(trial) {
      const { server, newLog, newUser } = trial
      const user = newUser()
      const ids = (await repeat(7, () => newLog({ user }))).map(({ id }) => id)
      for (const time_desc of [false, true]) {
        const met = await walk(trial, { user, limit: 2, time_desc }, () => newLog({ user }))
        const what = `What a walk with time_desc=${time_desc} met of the sessions that were there throughout`
        mustEqual(met.filter((id) => ids.includes(id)).sort(), [...ids].sort(), what)
      }
      const other = newUser()
      for (const _ of upTo(3)) await newLog({ user: other })
      const query = { user: other, limit: 1 }
      const { items, next_cursor } = await server.ok<Page<Session>>('GET', '/session', { query })
      const wrong: Query[] = [
        { user, limit: 1, cursor: next_cursor },
        { ...query, time_desc: true, cursor: next_cursor },
        { ...query, filter_by_configs: '{"a":1}', cursor: next_cursor },
        { ...query, cursor: next_cursor.slice(1) },
        { ...query, cursor: 'x' },
      ]
      for (const one of wrong)
        refused(
          await server.send('GET', '/session', { query: one }),
          400,
          'invalid_cursor',
          'The cursor is not of this query',
        )
      await server.ok('DELETE', `/session/${items[0]!.id}`)
      const rest = await server.ok<Page<Session>>('GET', '/session', {
        query: { ...query, limit: 5, cursor: next_cursor },
      })
      must(
        rest.items.length === 2,
        `After the item at a cursor was deleted, ${rest.items.length} of 2 followed.`,
      )
    },
  },
  {
    name: 'strictness',
    promise:
      'Nothing that is sent is ignored: an unknown, repeated or malformed parameter or field is refused.',
    reference: 'api.md#requests',
    async check({ server, newLog, newUser }) {
      const log = await newLog()
      const user = newUser()
      for (const path of [
        '?usr=x',
        '?user=',
        '?limit=0',
        '?limit=201',
        '?limit=1.5',
        '?time_desc=1',
        `?user=${user}&user=${user}`,
      ])
        refused(await server.send('GET', `/session${path}`), 400, 'invalid_request', 'The query is wrong')
      const body = { type: 'conformance', data: {}, dat: {} }
      refused(await log.send('POST', '/events', { body }), 400, 'invalid_request', 'The field dat is unknown')
      refused(await log.send('POST', '/events', { text: '{' }), 400, 'invalid_json', 'The body is not JSON')
      refused(
        await log.send('POST', '/events', { text: '{"type":"a","data":{"b":"\\u0000"}}' }),
        400,
        'invalid_request',
        'U+0000 cannot be stored',
      )
      mustEqual(await log.seqs(), [], 'The log after refused appends')
    },
  },
  {
    name: 'authorization',
    promise: 'Without a valid key, nothing is answered but 401.',
    reference: 'api.md#requests',
    async check({ as, newLog }) {
      const { path } = await newLog()
      for (const key of [undefined, '', 'sk-annals-unknown']) {
        const answer = await as(key).send('GET', path)
        refused(answer, 401, 'unauthorized', 'The key is missing or unknown')
        must(answer.headers.has('www-authenticate'), 'A 401 lacks WWW-Authenticate.')
      }
    },
  },
  {
    name: 'tenants',
    promise: "Another project's key gets the same answers as for an id that nobody has.",
    reference: 'api.md#answers',
    needsStranger: true,
    async check({ server, stranger, newLog, newUser }) {
      const user = newUser()
      const log = await newLog({ user })
      await log.append()
      const never = await stranger!.send('GET', `/session/${randomUUID()}`)
      refused(never, 404, 'session_not_found', 'Nobody has the session')
      for (const path of ['', '/timeline', '/events', '/messages?format=openai']) {
        const answer = await stranger!.send('GET', `${log.path}${path}`)
        refused(answer, 404, 'session_not_found', 'The session is of another project')
        must(
          answer.text === never.text,
          "The answer tells another project's session from one that nobody has.",
        )
      }
      const body = { type: 'conformance', data: {} }
      refused(
        await stranger!.send('POST', `${log.path}/events`, { body }),
        404,
        'session_not_found',
        'It is of another project',
      )
      refused(await stranger!.send('DELETE', log.path), 404, 'session_not_found', 'It is of another project')
      const { items } = await stranger!.ok<Page<Session>>('GET', '/session', { query: { user } })
      mustEqual(items, [], "What another project sees of a user's sessions")
      mustEqual(
        (await server.ok<Page<Session>>('GET', '/session', { query: { user } })).items.map(({ id }) => id),
        [log.id],
        'What its own project sees',
      )
    },
  },
]
