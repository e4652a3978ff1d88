import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { newSearchingProjects, placeOf, placesOf, untilIndexed } from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'

/* Questions in plain words. */

interface Entry {
  session_id: string
  seq: number
  role?: string
  score: number
  snippet: { text: string; hits: [number, number][] }
  before?: Entry
  after?: Entry
}

interface Answer {
  items: Array<{ session_id: string; score: number; title: string | null; entries: Entry[] }>
  terms: string[]
  complete: boolean
  indexed_through: string | null
  refilling?: { entries_done: number; entries: number }
}

const service = useSharedService()
const searching: Project[] = []
beforeAll(async () => void searching.push(...(await newSearchingProjects(service, 13))))

/** A project with sessions, each a list of what its user and its assistant say in turns. */
async function projectWith(sessions: Record<string, string[]>, users: Record<string, string> = {}) {
  const { token, id } = searching.pop()!
  const api = await service.newClient({ token })
  const ids: Record<string, string> = {}
  for (const [name, lines] of Object.entries(sessions)) ids[name] = await store(api, lines, users[name])
  await untilIndexed(api)
  return { api, ids, project_id: id }
}

async function store(api: ApiClient, lines: string[], user?: string, occurred_at?: string): Promise<string> {
  const { id } = expectOk(await api.createSession({ ...(user && { user }) }), 201)
  const entries = lines.map((content, index) => ({
    kind: 'message',
    format: 'openai',
    blob: { role: index % 2 === 0 ? 'user' : 'assistant', content },
    ...(occurred_at && { occurred_at }),
  }))
  if (entries.length > 0)
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
  return id
}

const ask = async (api: ApiClient, q: string, query: Query = {}) =>
  expectOk(await api.request<Answer>('GET', '/api/v1/search', { query: { mode: 'recall', q, ...query } }))
const asked = async (api: ApiClient, q: string, query: Query = {}) =>
  (await ask(api, q, query)).items.map(({ session_id }) => session_id)

describe('a question', () => {
  it('that names a date finds first what happened then, and finds the rest as well', async () => {
    const { api } = await projectWith({})
    const days = ['2023-05-08T13:56:00Z', '2023-07-31T09:00:00Z', '2024-01-12T20:00:00Z']
    const ids = await Promise.all(
      days.map((day) =>
        store(api, ['We went to the old lighthouse.', 'How was the lighthouse?'], 'mel', day),
      ),
    )
    await untilIndexed(api)
    const first = async (when: string) => {
      const found = await asked(api, `Who went to the lighthouse ${when}?`)
      expect(found.toSorted()).toEqual(ids.toSorted())
      return ids.indexOf(found[0]!)
    }
    expect(await first('on 8 May 2023')).toBe(0)
    expect(await first('on July 31st, 2023')).toBe(1)
    expect(await first('in January')).toBe(2)
    expect(await first('on 2023-07-29')).toBe(1)
  })

  it('finds the session whose words have other forms, with the entries around the best one', async () => {
    const { api, ids } = await projectWith({
      refund: [
        'Hello, this is Omar.',
        'How can I help you?',
        'I have complained twice already about my refunds.',
        'I am sorry about that.',
      ],
      weather: ['Will it rain tomorrow?', 'It will be sunny.'],
      other: ['Please change my seat.', 'It is 12A now, Omar.'],
      trip: ['We went up to the lake with both children.', 'How nice!'],
    })
    const { items, terms, complete } = await ask(api, 'When did Omar last complain about a refund?')
    expect(terms).toEqual(['omar', 'last', 'complain', 'refund'])
    expect(complete).toBe(true)
    expect(items[0]).toMatchObject({ session_id: ids.refund, title: 'Hello, this is Omar.' })
    expect(items.map(({ session_id }) => session_id)).not.toContain(ids.weather)
    const [best] = items[0]!.entries
    expect(best).toMatchObject({ seq: 3, role: 'user', before: { seq: 2 }, after: { seq: 4 } })
    const { text, hits } = best!.snippet
    expect(hits.map(([from, to]) => text.slice(from, to))).toEqual(['complained', 'refunds'])
    const { items: entries } = await ask(api, 'complain about a refund', { group: 'entry' })
    expect(entries[0]).toMatchObject({ session_id: ids.refund, seq: 3, score: expect.any(Number) })
    expect(await asked(api, 'Did a child go to some lake?')).toEqual([ids.trip])
    expect((await ask(api, 'Did a child go?')).items[0]!.entries[0]!.snippet.hits).toHaveLength(2)
    const plain = await api.request('GET', '/api/v1/search', { query: { q: 'complain refund' } })
    expect(expectOk(plain)).toMatchObject({ items: [] })
  })

  it('is answered with what was said before lines that an import kept, which repeat it', async () => {
    const { api, ids } = await projectWith({
      said: ['The migration of the ledger failed at midnight.', 'I see.'],
    })
    const { id } = expectOk(await api.createSession({}), 201)
    const kept = { raw: { output: 'migration of the ledger failed at midnight' }, noise: true }
    const entries = [1, 2, 3].map(() => ({ kind: 'event', type: 'source.claude-code.progress', data: kept }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    await untilIndexed(api)
    expect(await asked(api, 'Why did the migration of the ledger fail?')).toEqual([ids.said, id])
    const { items } = await ask(api, 'migration of the ledger', { group: 'entry' })
    expect(items.map(({ session_id }) => session_id)).toEqual([ids.said, id, id, id])
  })

  it('is answered with what a session has said since the question before', async () => {
    const { api, ids } = await projectWith({ trip: ['We want to see the lighthouse.', 'Noted.'] })
    expect(await asked(api, 'Who wants to see a lighthouse?')).toEqual([ids.trip])
    // Enough that their words are put together with those of before.
    const lines = ['The lighthouse has a museum of compasses.', 'I did not know.']
    const entries = lines.map((content) => ({
      kind: 'message',
      format: 'openai',
      blob: { role: 'user', content },
    }))
    expectOk(await api.request('POST', `/api/v1/session/${ids.trip}/entries`, { body: { entries } }), 201)
    await untilIndexed(api)
    const { items } = await ask(api, 'Which museums has the lighthouse?')
    expect(items[0]!.entries[0]).toMatchObject({ session_id: ids.trip, seq: 3 })
  })

  it('keeps to quotes, to what is excluded and to filters, and finds parts of names', async () => {
    const { api, ids } = await projectWith(
      {
        exact: ['My payment failed again.', 'The call of getUserDetails timed out.'],
        loose: ['Again I say that it failed, my payment.', 'I looked at src/billing/pay_card.ts.'],
        german: ['Die Bestellungen wurden gestern nicht geliefert.', 'Das tut mir leid.'],
        chinese: ['请问我的退款在哪里？', '马上查看。'],
      },
      { exact: 'ada', loose: 'bo' },
    )
    expect((await asked(api, 'payment failed'))[0]).toBe(ids.exact)
    expect(await asked(api, '"payment failed"')).toEqual([ids.exact])
    expect(await asked(api, 'payment failed -say')).toEqual([ids.exact])
    expect(await asked(api, 'payment -"payment failed"')).toEqual([ids.loose])
    expect(await asked(api, 'payments', { user: 'bo' })).toEqual([ids.loose])
    expect(await asked(api, 'payments', { user: 'nobody' })).toEqual([])
    expect(await asked(api, 'payments', { role: 'assistant' })).toEqual([])
    expect(await asked(api, 'payments', { kind: 'event' })).toEqual([])
    expect(await asked(api, 'payments', { session_id: ids.exact! })).toEqual([ids.exact])
    expect(await asked(api, 'details of the user')).toEqual([ids.exact])
    expect(await asked(api, 'where is pay_card')).toEqual([ids.loose])
    expect(await asked(api, 'Wann wurde die Bestellung geliefert?')).toEqual([ids.german])
    expect(await asked(api, '退款')).toEqual([ids.chinese])
  })

  it('is never answered with what was retracted, deleted or erased, has expired, or is of another project', async () => {
    const lines = ['The heirloom tomato recipe.', 'Noted.']
    const { api, ids, project_id } = await projectWith(
      { kept: lines, retracted: lines, deleted: lines, erased: lines, expired: lines },
      { erased: 'gone' },
    )
    expect((await asked(api, 'recipes of tomatoes')).sort()).toEqual(Object.values(ids).sort())
    const retraction = { body: { after_seq: 0 } }
    expectOk(await api.request('POST', `/api/v1/session/${ids.retracted}/retractions`, retraction))
    expectOk(await api.request('DELETE', `/api/v1/session/${ids.deleted}`))
    expectOk(await api.request('DELETE', '/api/v1/user/gone'))
    expectOk(await api.request('PATCH', `/api/v1/session/${ids.expired}`, { body: { expires_in_s: 60 } }))
    await execute(
      service.databaseUrl,
      "UPDATE session_heads SET updated_at = now() - interval '2 minutes' WHERE project_id = $1 AND session_id = $2",
      [project_id, ids.expired],
    )
    expect(await asked(api, 'recipes of tomatoes')).toEqual([ids.kept])
    expect(await asked(api, 'recipes of tomatoes', { group: 'entry' })).toEqual([ids.kept])
    const other = await service.newClient({ token: searching.at(-1)!.token })
    expect(await asked(other, 'recipes of tomatoes')).toEqual([])
  })

  it('is never answered with anything hidden, whatever is stored and asked', async () => {
    const WORDS = ['refund', 'refunds', 'seat', 'kettle', 'naïve', '東京駅', 'getUserDetails']
    const [USERS, FATES] = [['ada', 'bo', undefined], ['kept', 'kept', 'retracted', 'expired'] as const]
    const anyLine = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 })
    const anySession = fc.record({
      lines: fc.array(anyLine, { minLength: 2, maxLength: 5 }),
      user: fc.constantFrom(...USERS),
      fate: fc.constantFrom(...FATES),
    })
    const projects = [searching.pop()!, searching.pop()!]
    const apis = await Promise.all(projects.map(({ token }) => service.newClient({ token })))
    const stored = new Map<string, { place: string; words: string[]; user?: string; api: ApiClient }>()
    for (const [index, api] of apis.entries()) {
      const sessions = fc.sample(anySession, 12).map((session) => ({ ...session, id: '' }))
      for (const one of sessions)
        one.id = await store(
          api,
          one.lines.map((words) => words.join(' ')),
          one.user,
        )
      await untilIndexed(api)
      for (const { id, lines, user, fate } of sessions) {
        const show = (seq: number, words: string[]) =>
          stored.set(`${id} ${seq}`, { place: `${id} ${seq}`, words, ...(user && { user }), api })
        if (fate === 'expired') {
          expectOk(await api.request('PATCH', `/api/v1/session/${id}`, { body: { expires_in_s: 60 } }))
          continue
        }
        const there = fate === 'retracted' ? lines.slice(0, 1) : lines
        for (const [index, words] of there.entries()) show(index + 1, words)
        if (fate === 'kept') continue
        const retraction = { body: { after_seq: 1 } }
        expectOk(await api.request('POST', `/api/v1/session/${id}/retractions`, retraction))
        // The event that says so.
        show(lines.length + 1, [])
      }
      const expired = sessions.filter(({ fate }) => fate === 'expired').map(({ id }) => id)
      await execute(
        service.databaseUrl,
        "UPDATE session_heads SET updated_at = now() - interval '2 minutes' WHERE project_id = $1 AND session_id = ANY ($2)",
        [projects[index]!.id, expired],
      )
    }
    const anyQuestion = fc.record({
      words: fc.uniqueArray(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 3 }),
      more: fc.constantFrom('', ' -seat', ' -"naïve refund"', ' "refund"', ' re*'),
      user: fc.constantFrom(...USERS),
    })
    const check = async ({
      words,
      more,
      user,
    }: typeof anyQuestion extends fc.Arbitrary<infer T> ? T : never) => {
      const [q, filter] = [words.join(' ') + more, { limit: 50, ...(user && { user }) }]
      for (const api of apis) {
        const seen = [...stored.values()].filter((one) => one.api === api && (!user || one.user === user))
        const places = new Set(seen.map(({ place }) => place))
        const entries = (await ask(api, q, { ...filter, group: 'entry' })).items as unknown as Entry[]
        const sessions = (await ask(api, q, filter)).items
        const around = sessions.flatMap(({ session_id, entries }) =>
          entries.flatMap(({ seq, before, after }) =>
            [before?.seq, seq, after?.seq].flatMap((seq) => (seq === undefined ? [] : { session_id, seq })),
          ),
        )
        for (const entry of [...entries, ...around]) expect(places, q).toContain(placeOf(entry))
        if (more !== '') continue
        const found = new Set(entries.map(placeOf))
        for (const one of seen)
          if (one.words.some((word) => words.includes(word))) expect(found, q).toContain(one.place)
      }
    }
    await fc.assert(fc.asyncProperty(anyQuestion, check), { numRuns: 60 })
  })

  it('that stands word for word in an entry finds it before entries that have the words elsewhere', async () => {
    const WORDS = ['amber', 'basalt', 'cobalt', 'dune', 'ember', 'fjord']
    const anyPhrase = fc.uniqueArray(fc.constantFrom(...WORDS), { minLength: 2, maxLength: 4 })
    const phrases = fc.sample(anyPhrase, 6)
    const sessions: Record<string, string[]> = {}
    for (const [at, phrase] of phrases.entries()) {
      sessions[`said ${at}`] = [
        `We spoke of ${phrase.join(' ')} for a long while yesterday, and of much else.`,
      ]
      // The same words, more often and in less text, but never one after the other.
      const loose = phrase.toReversed().map((word) => `${word} ${word}`)
      sessions[`loose ${at}`] = Array(3).fill(loose.join(' '))
    }
    const { api, ids } = await projectWith(sessions)
    for (const [at, phrase] of phrases.entries()) {
      const q = phrase.join(' ')
      const isSaid = (text: string) => text.includes(q)
      const found = (await ask(api, q, { limit: 50 })).items
      const order = found.map(({ entries }) => isSaid(entries[0]!.snippet.text))
      expect(order, q).toEqual(order.toSorted((a, b) => Number(b) - Number(a)))
      expect(found.map(({ session_id }) => session_id)).toContain(ids[`said ${at}`])
      const query = { limit: 50, group: 'entry' }
      const entries = (await ask(api, q, query)).items as unknown as Entry[]
      const ofEntries = entries.map(({ snippet }) => isSaid(snippet.text))
      expect(ofEntries, q).toEqual(ofEntries.toSorted((a, b) => Number(b) - Number(a)))
      expect(ofEntries[0], q).toBe(true)
    }
  })

  it('is answered by what an older version indexed once that is written anew, beside searches by words', async () => {
    const { api, ids, project_id } = await projectWith({ one: ['She complained about refunds.', 'Sorry.'] })
    const own = [project_id]
    const older =
      "UPDATE search_entries SET words = regexp_replace(words, ' [~#][^ ]+', '', 'g') WHERE project_id = $1"
    await execute(service.databaseUrl, older, own)
    expect(await asked(api, 'complaining about a refund')).toEqual([])
    await execute(
      service.databaseUrl,
      `INSERT INTO search_refills (project_id, session_id, seq, entries_done, leased_until)
      VALUES ($1, '00000000-0000-0000-0000-000000000000', 0, 0, now() + interval '1 hour')`,
      own,
    )
    expect((await ask(api, 'refunds')).refilling).toEqual({ entries_done: 0, entries: 2 })
    expect(await placesOf(api, 'complained refunds')).toEqual([`${ids.one} 1`])
    await execute(
      service.databaseUrl,
      'UPDATE search_refills SET leased_until = now() WHERE project_id = $1',
      own,
    )
    await vi.waitFor(async () => expect((await ask(api, 'refunds')).refilling).toBeUndefined(), 60_000)
    expect(await asked(api, 'complaining about a refund')).toEqual([ids.one])
    expect(await placesOf(api, 'complained refunds')).toEqual([`${ids.one} 1`])
  })

  it('is refused with a sentence where it is none', async () => {
    const api = await service.newClient({ token: searching.at(-1)!.token })
    const many = Array.from({ length: 33 }, (_, n) => `word${n}`).join(' ')
    const refusals: [Query, string][] = [
      [{ q: '?!' }, 'q must have at least one word'],
      [{ q: '-paid' }, 'beside those to be without'],
      [{ q: many }, '32 words'],
      [{ q: 'refund', order: 'newest' }, 'order goes with mode=words'],
      [{ q: 'refund', cursor: 'x' }, 'cursor goes with mode=words'],
      [{ q: 'refund', limit: 51 }, 'at most 50'],
      [{ q: 'refund', mode: 'vectors' }, 'mode'],
    ]
    for (const [query, words] of refusals)
      expectError(
        await api.request('GET', '/api/v1/search', { query: { mode: 'recall', ...query } }),
        400,
        'invalid_request',
        words,
      )
  })
})

describe('a session that is found', () => {
  it('is called what its user said first, not what its system prompt says', async () => {
    const { api, ids } = await projectWith({ asked: [] })
    const entries = [
      { role: 'system', content: 'You answer questions on pavilions.' },
      { role: 'user', content: 'May I rent the pavilion?' },
    ].map((blob) => ({ kind: 'message', format: 'openai', blob }))
    expectOk(await api.request('POST', `/api/v1/session/${ids.asked}/entries`, { body: { entries } }), 201)
    await untilIndexed(api)
    const { items } = await ask(api, 'what was asked on pavilions')
    expect(items).toMatchObject([{ session_id: ids.asked, title: 'May I rent the pavilion?' }])
  })
})

describe('a search by words', () => {
  it('can be grouped by session, and calls a result of a tool by its name', async () => {
    const { api, ids } = await projectWith({ one: ['gazebo', 'a gazebo'], two: ['the gazebo'] })
    const blob = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'a', content: 'gazebo of the tool' }],
    }
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'find', input: {} }] }
    for (const said of [call, blob]) {
      const body = { format: 'anthropic', blob: said }
      expectOk(await api.request('POST', `/api/v1/session/${ids.two}/messages`, { body }), 201)
    }
    await untilIndexed(api)
    const query = { q: 'gazebo', group: 'session' }
    const { items } = expectOk(await api.request<Answer>('GET', '/api/v1/search', { query }))
    expect(items).toMatchObject([
      {
        session_id: ids.two,
        title: 'the gazebo',
        entries: [
          { seq: 3, role: 'tool' },
          { seq: 1, role: 'user' },
        ],
      },
      { session_id: ids.one, entries: [{ seq: 2 }, { seq: 1 }] },
    ])
  })
})
