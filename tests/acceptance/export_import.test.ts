import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
const annals = useTransfers(service)
let source: Project
let api: ApiClient

/** JSON texts of objects, with what is hard to keep: digits, spellings, strange keys, depth, nothing at all. */
function oddObjects(count: number): string[] {
  const text = fc
    .string({ unit: 'binary', maxLength: 8 })
    .filter((value) => value.isWellFormed() && !value.includes('\0'))
  const number = fc.oneof(
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
    fc
      .tuple(fc.bigInt(), fc.nat(), fc.constantFrom('', '0', '000'))
      .map(([a, b, zeros]) => `${a}.${b}${zeros}`),
    fc.tuple(fc.integer(), fc.integer({ min: -300, max: 300 })).map(([n, power]) => `${n}e${power}`),
  )
  const { object } = fc.letrec<{ object: string; value: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'medium' },
      number,
      text.map((value) => JSON.stringify(value)),
      fc.constantFrom('null', 'true', '{}', '[]', '0.0', '"\\u2028\\u007f"'),
      fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join(',')}]`),
      tie('object'),
    ),
    object: fc
      .array(fc.tuple(text, tie('value')), { maxLength: 4 })
      .map((pairs) => `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
  }))
  return [...fc.sample(object, count - 1), `${'{"a":['.repeat(300)}1${']}'.repeat(300)}`]
}

const post = (path: string, rawBody: string) =>
  api.request<{ id: string; items: Array<{ id: string }> }>('POST', `/api/v1${path}`, { rawBody })

/** Formats that take the message below. */
const FORMATS = ['openai', 'responses']

/** A session with events and messages of odd JSON. */
async function oddSession(user: string | null, objects: string[]): Promise<string> {
  const { id } = expectOk(
    await post('/session', `{"user":${JSON.stringify(user)},"configs":${objects[0]}}`),
    201,
  )
  const entries = objects.map((object, index) =>
    index % 3 === 0
      ? `{"kind":"message","blob":{"role":"user","content":"Hi","odd":${object}},"format":"${FORMATS[index % 2]}","meta":${object}}`
      : `{"kind":"event","type":${JSON.stringify(`t"\u2028${index}`)},"data":${object}${index % 3 === 1 ? `,"key":${JSON.stringify(`k"\u2028${index}`)}` : ''}}`,
  )
  const { items } = expectOk(await post(`/session/${id}/entries`, `{"entries":[${entries.join(',')}]}`), 201)
  const patched = await api.request('PATCH', `/api/v1/session/${id}/messages/${items[0]!.id}/meta`, {
    rawBody: '{"meta":{"patched":1.50}}',
  })
  expectOk(patched)
  return id
}

beforeAll(async () => {
  source = await service.newProject()
  api = await service.newClient({ token: source.token })
  const objects = oddObjects(90)
  for (const [index, user] of ['zoë "z"', 'adam', null].entries())
    await oddSession(user, objects.slice(index * 30, index * 30 + 30))
  for (const object of objects.slice(0, 10)) {
    expectOk(await post('/learning_spaces', `{"user":"adam","meta":${object}}`), 201)
    expectOk(await post('/learning_spaces', `{"meta":${object}}`), 201)
  }
  expectOk(await post('/session', '{"user":"without entries","disable_task_tracking":true}'), 201)
})

describe('an export that is imported elsewhere', () => {
  it('comes out again equal to the byte', async () => {
    const first = await annals.export(source.name)
    expect(first.body).toHaveLength(3 + 20 + 4 + 90)
    const target = await service.newProject()
    await annals.import(first.path, target.id)
    const second = await annals.export(target.name)
    expect(second.body).toEqual(first.body)
    const header = JSON.parse(second.lines[0]!)
    expect(header).toMatchObject({
      annals_export: 1,
      what: 'project',
      project_id: target.id,
      project: target.name,
    })
  })

  it('reads the same over the API, and its logs go on', async () => {
    const { path } = await annals.export(source.name)
    const target = await service.newProject()
    await annals.import(path, target.name)
    const copy = await service.newClient({ token: target.token })
    const ofSource = (text: string) => text.replaceAll(target.id, source.id)
    const { text, json } = await api.request<{ items: Array<{ id: string }> }>('GET', '/api/v1/session')
    expect(ofSource((await copy.request('GET', '/api/v1/session')).text)).toBe(text)
    const { id } = json.data.items[0]!
    for (const what of ['timeline?limit=200', 'messages?format=openai', 'token_counts']) {
      const log = await api.request('GET', `/api/v1/session/${id}/${what}`)
      expect(ofSource((await copy.request('GET', `/api/v1/session/${id}/${what}`)).text)).toBe(log.text)
    }
    const last = expectOk(await copy.listEvents(id, { time_desc: true, limit: 1 })).items[0]!
    const next = expectOk(await copy.appendEvent(id, { type: 'next', data: {} }))
    expect(next.seq).toBe(31)
    expect(next.created_at >= last.created_at).toBe(true)
  })

  it('is stored once, however often it is imported', async () => {
    const { path } = await annals.export(source.name)
    const target = await service.newProject()
    // Each kind of row of every module has its count, between these.
    const all = /3 users, .*20 learning spaces, .*4 sessions, 90 entries/
    const nothing = / 0 sessions, 0 entries\.$/
    const [would, before] = (await annals.import(path, target.name, '--dry-run')).split('\n')
    expect(would).toMatch(all)
    expect(before).toMatch(nothing)
    expect((await annals.export(target.name)).body).toEqual([])
    expect((await annals.import(path, target.name)).split('\n')[0]).toMatch(all)
    for (const options of [['--dry-run'], []]) {
      const [imported, already] = (await annals.import(path, target.name, ...options)).split('\n')
      expect(imported).toMatch(nothing)
      expect(already).toMatch(all)
    }
  })
})

it('an export has whole logs also while they grow', async () => {
  const busy = await service.newProject()
  const client = await service.newClient({ token: busy.token })
  const ids = await Promise.all([1, 2, 3].map(async () => expectOk(await client.createSession({}), 201).id))
  let stopped = false
  const writing = ids.map(async (id) => {
    while (!stopped) expectOk(await client.appendEvent(id, { type: 'tick', data: {} }))
  })
  try {
    const target = await service.newProject()
    for (const _ of [1, 2]) await annals.import((await annals.export(busy.name)).path, target.name)
    expect((await annals.export(target.name)).body.length).toBeGreaterThan(ids.length)
  } finally {
    stopped = true
    await Promise.all(writing)
  }
})

describe('an export of a part', () => {
  it('of a user has what is the user’s, and no other’s', async () => {
    const { lines, body } = await annals.export(source.name, '--user', 'adam')
    expect(JSON.parse(lines[0]!)).toMatchObject({ what: 'user', user: 'adam' })
    const kinds = body.map((line) => JSON.parse(line) as { kind: string; identifier?: string; user?: string })
    expect(kinds.filter(({ kind }) => kind === 'user').map(({ identifier }) => identifier)).toEqual(['adam'])
    expect(kinds.filter((line) => line.user !== undefined).every(({ user }) => user === 'adam')).toBe(true)
    expect(body).toHaveLength(1 + 10 + 1 + 30)
  })

  it('of a session, by its id or the beginning of it, has its user and its log', async () => {
    const { id } = expectOk(await api.listSessions({ user: 'zoë "z"' })).items[0]!
    const { path, body } = await annals.export(source.name, '--session', id.toUpperCase())
    expect(body).toHaveLength(1 + 1 + 30)
    const target = await service.newProject()
    await annals.import(path, target.name)
    expect((await annals.export(target.name)).body).toEqual(body)
    // The first characters of a session's id are a time, which others may share.
    const by_beginning = await annals.export(source.name, id.slice(0, 30))
    expect(by_beginning.body).toEqual(body)
    const several = await annals.run('export', '--project', source.name, '--session', id.slice(0, 4))
    expect([several.code, several.stderr]).toEqual([2, expect.stringMatching(/^annals: Several sessions/)])
  })

  it('is refused for what the project does not have', async () => {
    const { id } = expectOk(await api.listSessions()).items[0]!
    const other = await service.newProject()
    for (const args of [
      ['--session', id],
      ['--session', randomUUID()],
      ['--session', 'ffffffff'],
      ['--user', 'adam'],
    ]) {
      const path = annals.newPath()
      const result = await annals.run('export', '--project', other.name, '--output', path, ...args)
      expect(result.code).toBe(3)
      expect(result.stderr).toMatch(
        /^annals: (There is no such (session|user) in this project\.|No session of the project has an id that begins with ffffffff\. .+)$/,
      )
    }
    const both = await annals.run('export', '--project', source.name, '--user', 'adam', '--session', id)
    expect(both.code).toBe(2)
    const twice = await annals.run('export', '--project', source.name, id, '--session', id)
    expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('named twice')])
    expect((await annals.run('export', '--project', 'no such project')).stderr).toContain(
      'There is no project',
    )
  })
})

it('sessions of a user who is here with another id go to that one', async () => {
  const target = await service.newProject()
  const there = await service.newClient({ token: target.token })
  const mine = expectOk(await there.createSession({ user: 'adam' }), 201)
  const { path } = await annals.export(source.name, '--user', 'adam')
  await annals.import(path, target.name)
  const { items } = expectOk(await there.listSessions({ user: 'adam' }))
  expect(items.map(({ user_id }) => user_id)).toEqual([mine.user_id, mine.user_id])
})
