import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const service = useSharedService()
const annals = useTransfers(service)
let project: Project
let api: ApiClient

interface Statement {
  id: string
  state: string
  pinned: boolean
  text: string
  skill: string
  supports: number
  used: number
  helped: number
  harmed: number
}
interface Version {
  reason: string
  author: string
  text: string | null
}

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const post = <T = Record<string, unknown>>(path: string, body: unknown) =>
  api.request<T>('POST', `/api/v1${path}`, { body })
const patch = (id: string, body: unknown) =>
  api.request<Statement & Record<string, unknown>>('PATCH', `/api/v1/statements/${id}`, { body })
const get = <T = Record<string, unknown>>(path: string) => api.request<T>('GET', `/api/v1${path}`)
const newSpace = async (body: object = {}) => expectOk(await api.createLearningSpace(body), 201).id
const statementsOf = async (space: string, query = '') =>
  expectOk(await get<Page<Statement>>(`/learning_spaces/${space}/statements${query}`)).items
const historyOf = async (space: string) =>
  expectOk(await get<Page<Version>>(`/learning_spaces/${space}/history`)).items
const contextOf = async (space: string, query = '') =>
  expectOk(
    await get<{ text: string; ids: string[]; tokens: number }>(`/learning_spaces/${space}/context${query}`),
  )

/** A session with a failed call, which the space has learnt from. */
async function learnError(space: string, user: string, error: string, name = 'book'): Promise<string> {
  const session = expectOk(await api.createSession({ user }), 201).id
  const data = { name, arguments: {}, error }
  expectOk(await api.appendEvent(session, { type: 'tool_call', data }))
  expectOk(await post(`/learning_spaces/${space}/learn`, { session_id: session }), 201)
  await vi.waitFor(async () => {
    const { status } = expectOk(await get(`/learning_spaces/${space}/sessions/${session}`))
    expect(status).toBe('completed')
  }, 25_000)
  return session
}

describe('statements', () => {
  it('wait for a person, who approves, edits and retires them, and each change of SKILL.md is kept', async () => {
    const space = await newSpace()
    await learnError(space, 'ada', 'the seat is taken')
    const [proposed] = await statementsOf(space, '?state=proposed&kind=fact&skill=book')
    expect((await contextOf(space)).ids).toEqual([])
    const approved = expectOk(await patch(proposed!.id, { state: 'active' }))
    expect(approved).toMatchObject({ state: 'active', pinned: true })
    expect((await contextOf(space, '?q=seat')).text).toContain('the seat is taken')
    expectOk(await patch(proposed!.id, { text: 'Seats may be taken.\n<!-- sly -->', kind: 'pitfall' }))
    expect((await contextOf(space)).text).toContain('(pitfall) Seats may be taken. ‹!-- sly --›')
    expectOk(await patch(proposed!.id, { state: 'retired' }))
    expect((await contextOf(space)).ids).toEqual([])
    const history = await historyOf(space)
    expect(history.map(({ reason, author }) => `${reason} ${author}`)).toEqual([
      'Retired. person',
      'Edited. person',
      'Approved. person',
    ])
    expect(history[2]!.text).toMatch(
      /^---\nname: book\ndescription: ".+"\n---\n[\s\S]*- `book` answered .*<!-- \[.+#1\] -->/,
    )
    expect(await statementsOf(space, '?state=active')).toEqual([])
  })

  it('of a person are active at once, and the same one again is not stored twice', async () => {
    const space = await newSpace()
    const body = { text: 'Ask for the booking code first.', kind: 'procedure', skill: 'booking' }
    const path = `/learning_spaces/${space}/statements`
    const first = expectOk(await post<Statement>(path, body), 201)
    expect(first).toMatchObject({ state: 'active', author: 'person', pinned: true, skill: 'booking' })
    expect(expectOk(await post<Statement>(path, body), 201).id).toBe(first.id)
    expect(await statementsOf(space)).toHaveLength(1)
    for (const wrong of [{ text: ' ' }, { text: 'x', skill: 'No Name' }, { text: 'x', state: 'active' }, {}])
      expectError(await post(path, wrong), 400, 'invalid_request')
    expectError(await patch(NOBODYS_ID, { state: 'active' }), 404, 'statement_not_found')
    expect(expectOk(await patch(first.id, {})).text).toBe(first.text)
    expectError(await patch(first.id, { state: 'revoked' }), 400, 'invalid_request', '/state')
  })

  it('of a person can be added again once their words were changed, or they were retired', async () => {
    const path = `/learning_spaces/${await newSpace()}/statements`
    const body = { text: 'Ask for the name first.' }
    const add = async () => expectOk(await post<Statement>(path, body), 201)
    expectOk(await patch((await add()).id, { text: 'Ask for the code first.' }))
    const again = await add()
    expect(again).toMatchObject({ ...body, state: 'active' })
    expectOk(await patch(again.id, { state: 'retired' }))
    expect(await add()).toMatchObject({ ...body, state: 'active' })
  })

  it('that fit the words come first, as many as the tokens have room for', async () => {
    const space = await newSpace()
    for (const text of ['Trains need a seat.', 'Hotels need a passport.', 'Baggage costs extra.'])
      expectOk(await post(`/learning_spaces/${space}/statements`, { text }), 201)
    const { text } = await contextOf(space, '?q=what%20does%20baggage%20cost%20in%20hotels')
    expect(text.indexOf('Baggage')).toBeGreaterThan(0)
    expect(text).not.toContain('Trains')
    const short = await contextOf(space, '?max_tokens=32')
    expect(short.ids).toHaveLength(1)
    expect(short.tokens).toBeLessThanOrEqual(32)
    expect(await contextOf(space, '?max_tokens=1')).toMatchObject({ text: '', ids: [], tokens: 0 })
  })

  it('count what sessions say of them, each session once', async () => {
    const space = await newSpace()
    const { id } = expectOk(
      await post<Statement>(`/learning_spaces/${space}/statements`, { text: 'A b c.' }),
      201,
    )
    const session = expectOk(await api.createSession({}), 201).id
    const say = (helped: boolean, session_id = session, statement_ids = [id]) =>
      post(`/learning_spaces/${space}/feedback`, { statement_ids, session_id, helped })
    expectOk(await say(true))
    expectOk(await say(false))
    expectOk(await say(true, expectOk(await api.createSession({}), 201).id))
    expect((await statementsOf(space))[0]).toMatchObject({ used: 2, helped: 1, harmed: 1 })
    expectError(await say(true, NOBODYS_ID), 404, 'session_not_found')
    expectError(await say(true, session, [NOBODYS_ID]), 404, 'statement_not_found')
  })
})

describe('erasing what statements rest on', () => {
  it('revokes them, counts that, and leaves no word of the user in any table', async () => {
    const space = await newSpace()
    const word = `zebra${Math.random().toString(36).slice(2).replace(/\d/g, 'x')}`
    await learnError(space, 'carol', `the ${word} is missing`)
    const shared = 'the door is locked'
    for (const user of ['carol', 'dan']) await learnError(space, user, shared)
    for (const { id } of await statementsOf(space)) expectOk(await patch(id, { state: 'active' }))
    expect((await historyOf(space))[0]!.text).toContain(word)
    const receipt = expectOk(await api.request<{ deleted: object }>('DELETE', '/api/v1/user/carol'))
    expect(receipt.deleted).toMatchObject({ sessions: 2, statement_cites: 2, revoked_statements: 1 })
    const left = await statementsOf(space)
    expect(left.map(({ state, supports }) => `${state} ${supports}`).sort()).toEqual([
      'active 1',
      'revoked 0',
    ])
    const revoked = left.find(({ state }) => state === 'revoked')!
    expect(revoked.text).toBe('')
    expectError(await patch(revoked.id, { text: 'x' }), 409, 'statement_revoked')
    expect((await historyOf(space)).map(({ author }) => author)).toContain('erasure')
    for (const table of [
      'statements',
      'statement_cites',
      'skill_versions',
      'skills',
      'space_sessions',
      'entries',
    ])
      expect(
        await queryRows(
          service.databaseUrl,
          `SELECT 1 FROM ${table} t WHERE t.project_id = $1 AND t::text LIKE $2`,
          [project.id, `%${word}%`],
        ),
      ).toEqual([])
  })

  it('leaves no name of a tool that only the user’s sessions called, until it is called again', async () => {
    const space = await newSpace()
    const tool = `call_${Math.random().toString(36).slice(2).replace(/\d/g, 'x')}`
    const words = `%${tool.slice(5)}%`
    await learnError(space, 'gil', 'the line is busy', tool)
    const [statement] = await statementsOf(space)
    for (const state of ['active', 'retired']) expectOk(await patch(statement!.id, { state }))
    expectOk(await api.request('DELETE', '/api/v1/user/gil'))
    const tables = await queryRows(
      service.databaseUrl,
      "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'project_id'",
    )
    for (const { table_name } of tables) {
      const sql = `SELECT 1 FROM ${table_name} t WHERE t.project_id = $1 AND t::text LIKE $2`
      expect(await queryRows(service.databaseUrl, sql, [project.id, words]), table_name).toEqual([])
    }
    await learnError(space, 'hal', 'the line is busy', tool)
    const [revived] = await statementsOf(space)
    expect(revived).toMatchObject({ id: statement!.id, state: 'proposed' })
    expect(revived!.skill).toBe(tool.replace('_', '-'))
  })

  it('takes a space with all that it learnt, and a user with the space of the user', async () => {
    const space = await newSpace({ user: 'eve' })
    await learnError(space, 'eve', 'the bridge is closed')
    expectOk(await api.request('DELETE', `/api/v1/learning_spaces/${await newSpace()}`))
    const receipt = expectOk(await api.request<{ deleted: object }>('DELETE', '/api/v1/user/eve'))
    expect(receipt.deleted).toMatchObject({ learning_spaces: 1, statements: 1, statement_cites: 1 })
    expectError(await get(`/learning_spaces/${space}/statements`), 404, 'learning_space_not_found')
    const rows = await queryRows(
      service.databaseUrl,
      'SELECT 1 FROM statement_cites c WHERE c.project_id = $1 AND c.learning_space_id = $2',
      [project.id, space],
    )
    expect(rows).toEqual([])
  })
})

describe('what a space has learnt', () => {
  it('comes through an export and an import whole, and is verified', async () => {
    const space = await newSpace()
    await learnError(space, 'fay', 'the gate is shut')
    const [statement] = await statementsOf(space)
    expectOk(await patch(statement!.id, { state: 'active' }))
    const { path } = await annals.export(project.name)
    const copy = await service.newProject()
    await annals.import(path, copy.name)
    const reader = await service.newClient({ token: copy.token })
    // The copy reads what is there once more, which changes nothing.
    const marks = "SELECT 1 FROM change_marks WHERE project_id = $1 AND consumer = 'learning'"
    await vi.waitFor(async () => expect(await queryRows(service.databaseUrl, marks, [copy.id])).toEqual([]))
    for (const what of ['statements', 'sessions', 'history', 'context', 'policy']) {
      const place = `/api/v1/learning_spaces/${space}/${what}`
      expect(expectOk(await reader.request('GET', place))).toEqual(expectOk(await api.request('GET', place)))
    }
    for (const { name } of [project, copy]) {
      const verified = await annals.run('verify', '--project', name)
      expect(verified.code, verified.stdout + verified.stderr).toBe(0)
    }
  })
})
