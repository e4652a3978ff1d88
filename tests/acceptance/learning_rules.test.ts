import { beforeAll, describe, expect, it, vi } from 'vitest'
import { agentRuns } from '../harness/agent_runs.ts'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { tablesThatMention } from '../harness/tables_that_mention.ts'

const service = useSharedService()
let api: ApiClient
let project_id: string

interface SpaceSession {
  session_id: string
  status: string
  learnt_seq: number
}
interface Cite {
  session_id: string
  seq: number
  quote: string
  polarity: string
}
interface Statement {
  id: string
  skill: string
  kind: string
  state: string
  author: string
  pinned: boolean
  text: string
  supports: number
  helped: number
  harmed: number
  cites: Cite[]
}

beforeAll(async () => {
  const project = await service.newProject()
  project_id = project.id
  api = await service.newClient({ token: project.token })
})

const post = <T = Record<string, unknown>>(path: string, body: unknown) =>
  api.request<T>('POST', `/api/v1${path}`, { body })
const get = <T = Record<string, unknown>>(path: string) => api.request<T>('GET', `/api/v1${path}`)
const newSpace = async (body: object = {}) => expectOk(await api.createLearningSpace(body), 201).id
const newSession = async (body: object = {}) => expectOk(await api.createSession(body), 201).id
const learn = (space: string, session_id: string) =>
  post<SpaceSession>(`/learning_spaces/${space}/learn`, { session_id })
const statementsOf = async (space: string, query = '') =>
  expectOk(await get<Page<Statement>>(`/learning_spaces/${space}/statements${query}`)).items

/** Appends a call of a tool with its result. */
async function call(session: string, name: string, given: object, result: string) {
  const id = `call_${Math.random()}`
  const called = { id, type: 'function', function: { name, arguments: JSON.stringify(given) } }
  const blobs = [
    { role: 'assistant', content: null, tool_calls: [called] },
    { role: 'tool', tool_call_id: id, content: result },
  ]
  for (const blob of blobs) expectOk(await post(`/session/${session}/messages`, { blob }), 201)
}

async function learnt(space: string, session: string, seq: number) {
  await vi.waitFor(async () => {
    const path = `/learning_spaces/${space}/sessions/${session}`
    expect(expectOk(await get<SpaceSession>(path))).toMatchObject({ status: 'completed', learnt_seq: seq })
  }, 25_000)
}

describe('giving sessions to a learning space', () => {
  it('answers with the record, lists it, and refuses the same session again', async () => {
    const [space, session] = [await newSpace(), await newSession()]
    const record = expectOk(await learn(space, session), 201)
    expect(record).toEqual({
      id: expect.stringMatching(UUID),
      learning_space_id: space,
      session_id: session,
      status: 'pending',
      error: null,
      learnt_seq: 0,
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: expect.stringMatching(TIMESTAMP),
    })
    expectError(await learn(space, session), 409, 'session_in_space')
    await learnt(space, session, 0)
    const list = expectOk(await get<SpaceSession[]>(`/learning_spaces/${space}/sessions`))
    expect(list.map(({ session_id }) => session_id)).toEqual([session])
  })

  it('refuses, in the space of a user, sessions of others, and says why', async () => {
    const space = await newSpace({ user: 'ada' })
    for (const owner of [{}, { user: 'bob' }])
      expectError(await learn(space, await newSession(owner)), 409, 'user_mismatch', 'belongs to a user')
    expectOk(await learn(space, await newSession({ user: 'ada' })), 201)
  })

  it('knows no session or space of another project', async () => {
    const [space, session] = [await newSpace(), await newSession()]
    const other = await service.newClient()
    const foreign = expectOk(await other.createSession({}), 201).id
    for (const id of [NOBODYS_ID, foreign]) expectError(await learn(space, id), 404, 'session_not_found')
    const path = `/api/v1/learning_spaces/${space}`
    const answer = await other.request('POST', `${path}/learn`, { body: { session_id: foreign } })
    expectError(answer, 404, 'learning_space_not_found')
    for (const what of ['sessions', 'statements', 'context', 'history', 'policy'])
      expectError(await other.request('GET', `${path}/${what}`), 404, 'learning_space_not_found')
    expectError(await get(`/learning_spaces/${space}/sessions/${session}`), 404, 'space_session_not_found')
  })
})

describe('rules', () => {
  it('make one cited statement of an error that several sessions had, with the repair, as they are appended', async () => {
    const space = await newSpace()
    const sessions = [await newSession({ user: 'u1' }), await newSession({ user: 'u2' })]
    for (const session of sessions) expectOk(await learn(space, session), 201)
    for (const [index, session] of sessions.entries()) {
      await call(session, 'pay', { card: `c${index}`, amount: 9 }, `Error: total is ${index}12, but paid 3`)
      await call(session, 'pay', { card: `c${index}`, amount: 12 }, '{"ok":true}')
      await learnt(space, session, 4)
    }
    const [statement, ...others] = await statementsOf(space)
    expect(others).toEqual([])
    expect(statement).toMatchObject({
      skill: 'pay',
      kind: 'fact',
      state: 'proposed',
      author: 'rule',
      supports: 2,
      text: '`pay` answered “total is …, but paid …”. The next call succeeded with another `amount`.',
    })
    const shown = statement!.cites.filter(({ seq }) => seq === 2)
    expect(shown.map(({ session_id }) => session_id).sort()).toEqual([...sessions].sort())
    expect(shown.map(({ quote }) => quote).sort()).toEqual([
      'Error: total is 012, but paid 3',
      'Error: total is 112, but paid 3',
    ])
  })

  it('forget how an error was mended with the session that showed it, and keep the error', async () => {
    const space = await newSpace()
    const [other, mending] = [await newSession(), await newSession()]
    for (const session of [other, mending]) expectOk(await learn(space, session), 201)
    const error = 'Error: total does not fit'
    await call(other, 'pay', { zebra: 1 }, error)
    await learnt(space, other, 2)
    await call(mending, 'pay', { zebra: 2 }, error)
    await call(mending, 'pay', { zebra: 3 }, 'done')
    await learnt(space, mending, 4)
    const [statement] = await statementsOf(space)
    expect(statement!.text).toContain('succeeded with another `zebra`')
    expectOk(await api.request('PATCH', `/api/v1/statements/${statement!.id}`, { body: { state: 'active' } }))
    const kept = '`pay` answered “total does not fit”.'
    const found = () => tablesThatMention(service.databaseUrl, project_id, ['succeeded with another `zebra`'])
    expect(await found()).toEqual(expect.arrayContaining(['skill_versions', 'statements']))
    expectOk(await api.deleteSession(mending))
    expect(await found()).toEqual([])
    expect((await statementsOf(space)).map(({ text }) => text)).toEqual([kept])
  })

  it('read a session for a space that it was given to later, too', async () => {
    const session = await newSession()
    await call(session, 'seek', {}, 'Error: nothing is there')
    for (let n = 0; n < 2; n++) {
      const space = await newSpace()
      expectOk(await learn(space, session), 201)
      await learnt(space, session, 2)
      expect(await statementsOf(space)).toHaveLength(1)
    }
  })

  it('read nothing in a space whose mode is off, and all of it when that changes', async () => {
    const [space, session] = [await newSpace(), await newSession()]
    const put = (mode: string) =>
      api.request('PUT', `/api/v1/learning_spaces/${space}/policy`, { body: { mode } })
    expect(expectOk(await get(`/learning_spaces/${space}/policy`))).toEqual({ mode: 'suggest' })
    expectOk(await put('off'))
    await call(session, 'seek', {}, 'Error: nothing is there')
    expectOk(await learn(space, session), 201)
    const other = await newSpace()
    expectOk(await learn(other, session), 201)
    await learnt(other, session, 2)
    expect(await statementsOf(space)).toEqual([])
    expectOk(await put('auto'))
    await learnt(space, session, 2)
    // What a tool said never becomes active without a person.
    expect((await statementsOf(space)).map(({ state }) => state)).toEqual(['proposed'])
  })

  it('cite words that stand in the entries of recorded runs', async () => {
    const space = await newSpace()
    const runs = agentRuns().slice(0, 20)
    const sessions = new Map<string, string[]>()
    for (const { messages } of runs) {
      const session = await newSession()
      const entries = messages.map((blob) => ({ kind: 'message', blob }))
      expectOk(await post(`/session/${session}/entries`, { entries }), 201)
      expectOk(await learn(space, session), 201)
      sessions.set(
        session,
        messages.map((blob) => JSON.stringify(blob)),
      )
    }
    for (const [session, texts] of sessions) await learnt(space, session, texts.length)
    const statements = await statementsOf(space, '?limit=200')
    for (const { cites } of statements)
      for (const { session_id, seq, quote } of cites) {
        const escaped = JSON.stringify(quote).slice(1, -1)
        const text = sessions.get(session_id)![seq - 1]!
        expect(text.includes(escaped) || text.includes(JSON.stringify(escaped).slice(1, -1))).toBe(true)
      }
  })
})
