import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import type { Query } from '../harness/http_client.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { mixedEntries, newSessionLog } from '../harness/session_log.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
const annals = useTransfers(service)
let project: Project
let api: ApiClient
let other: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  other = await service.newClient({ token: project.token, node: service.secondNode })
})

const newSession = async (body: unknown = {}) => expectOk(await api.createSession(body), 201).id
const idsOf = (sessions: Session[]) => sessions.map(({ id }) => id)
const walk = async (query: Query) =>
  idsOf(await walkPages((cursor) => api.listSessions({ limit: 7, ...query, cursor })))
const statusOf = async (id: string) => (await api.getSession(id)).status
const erase = (user: string) =>
  api.request<{ deleted: Record<string, number> }>('DELETE', `/api/v1/user/${user}`)
const newChildren = async (parent: string, count: number, body: object = {}) => {
  const ids: string[] = []
  // As many as a project may have under way on a busy machine.
  while (ids.length < count)
    ids.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(20, count - ids.length) }, () => newSession({ parent, ...body })),
      )),
    )
  return ids
}

async function expectSound(): Promise<void> {
  const verified = await annals.run('verify', '--project', project.name)
  expect(verified.code, verified.stdout + verified.stderr).toBe(0)
}

describe('a session below another', () => {
  it('shows its parent, and is created once for one use_uuid and one parent', async () => {
    const parent = await newSession()
    const use_uuid = randomUUID()
    const body = { parent: parent.toUpperCase(), use_uuid }
    expect(expectOk(await api.createSession(body), 201)).toMatchObject({ id: use_uuid, parent_id: parent })
    expect(expectOk(await api.createSession(body))).toMatchObject({ parent_id: parent })
    expectOk(await api.createSession({ use_uuid }))
    expectError(await api.createSession({ use_uuid, parent: await newSession() }), 409, 'session_exists')
    expect(expectOk(await api.getSession(parent))).not.toHaveProperty('parent_id')
    expect(await newSession({ parent: null })).toBeDefined()
  })

  it('is refused below what is no session of the project, and leaves no user', async () => {
    const foreign = expectOk(await (await service.newClient()).createSession(), 201).id
    for (const parent of [NOBODYS_ID, foreign]) {
      const refused = await api.createSession({ parent, user: 'nobody' })
      expectError(refused, 404, 'session_not_found', '/parent')
    }
    expectError(await api.createSession({ parent: 'x' }), 400, 'invalid_request', '/parent')
    expect(expectOk(await api.request<{ items: unknown[] }>('GET', '/api/v1/user/ls')).items).toEqual([])
  })

  it('is listed by its parent, together with every other filter, in either order', async () => {
    const [first, second] = [await newSession({ user: 'ada' }), await newSession()]
    const ofFirst: string[] = []
    for (let n = 0; n < 20; n++) {
      const body = { configs: { n: n % 2 }, user: n % 4 ? 'ada' : 'bob' }
      ofFirst.push(await newSession({ ...body, parent: first }))
      await newSession({ ...body, parent: second })
    }
    const grandchild = await newSession({ parent: ofFirst[0] })
    const wanted = (keep: (n: number) => boolean) => ofFirst.filter((_, n) => keep(n))
    const filter_by_configs = '{"n":1}'
    expect(await walk({ parent: first })).toEqual(ofFirst)
    expect(await walk({ parent: first.toUpperCase(), time_desc: true })).toEqual([...ofFirst].reverse())
    expect(await walk({ parent: first, user: 'bob' })).toEqual(wanted((n) => n % 4 === 0))
    expect(await walk({ parent: first, filter_by_configs })).toEqual(wanted((n) => n % 2 === 1))
    const both = { user: 'ada', filter_by_configs: '{"n":0}' }
    expect(await walk({ parent: first, ...both })).toEqual(wanted((n) => n % 4 === 2))
    expect(await walk({ parent: ofFirst[0] })).toEqual([grandchild])
    expect(await walk({ parent: 'none' })).toEqual([first, second])
    expect(await walk({ parent: 'none', user: 'ada' })).toEqual([first])
    expect(await walk({ parent: 'none', filter_by_configs })).toEqual([])
    expect(await walk({ parent: NOBODYS_ID })).toEqual([])
    expect(await walk({})).toHaveLength(43)
    const active = (query: Query) => walk({ order_by: 'last_activity', ...query })
    await vi.waitFor(async () => expect(await active({ parent: 'none' })).toHaveLength(2), 20_000)
    await vi.waitFor(async () =>
      expect((await active({ parent: first })).sort()).toEqual([...ofFirst].sort()),
    )
    expect((await active({ parent: first, user: 'bob' })).sort()).toEqual(wanted((n) => n % 4 === 0).sort())
    expect((await active({ parent: first, filter_by_configs })).sort()).toEqual(
      wanted((n) => n % 2 === 1).sort(),
    )
    expect(await active({ parent: 'none', user: 'ada' })).toEqual([first])
  })

  it('keeps to one query by its cursor, and a parent that can be none is refused', async () => {
    const parent = await newSession()
    await newChildren(parent, 3)
    const { next_cursor } = expectOk(await api.listSessions({ parent, limit: 1 }))
    for (const query of [{}, { parent: 'none' }, { parent: NOBODYS_ID }])
      expectError(await api.listSessions({ ...query, cursor: next_cursor }), 400, 'invalid_cursor')
    for (const wrong of ['', 'NONE', 'x', parent.slice(1), `${parent}x`])
      expectError(await api.listSessions({ parent: wrong }), 400, 'invalid_request', 'parent')
  })

  it('is found by new configs, and a copy of it stands alone', async () => {
    const parent = await newSession()
    const child = await newSession({ parent, configs: { a: 1 } })
    const replaced = await api.request('PUT', `/api/v1/session/${child}/configs`, {
      body: { configs: { b: 2 } },
    })
    expectOk(replaced)
    expect(await walk({ parent, filter_by_configs: '{"b":2}' })).toEqual([child])
    expect(await walk({ parent, filter_by_configs: '{"a":1}' })).toEqual([])
    const copied = await api.request<{ new_session_id: string }>('POST', `/api/v1/session/${child}/copy`)
    const copy = expectOk(await api.getSession(expectOk(copied).new_session_id))
    expect(copy).not.toHaveProperty('parent_id')
    expect(await walk({ parent: 'none' })).toEqual([parent, copy.id])
    expectOk(await api.deleteSession(parent))
    expect(await statusOf(copy.id)).toBe(200)
    await expectSound()
  })

  it('is exported and imported with its parent, whichever user comes first', async () => {
    const parent = await newSession({ user: 'zoe' })
    const child = await newSession({ user: 'ada', parent, configs: { a: 1 } })
    const { path } = await annals.export(project.name)
    project = await service.newProject()
    await annals.import(path, project.name)
    api = await service.newClient({ token: project.token })
    expect(await walk({ parent, user: 'ada', filter_by_configs: '{"a":1}' })).toEqual([child])
    await expectSound()
  })
})

describe('deleting a session', () => {
  it('takes the sessions below it along, however many and however deep, and no others', async () => {
    const parent = await newSession()
    const bystander = await newSession()
    const children = await newChildren(parent, 230)
    let deepest = children[7]!
    for (let depth = 0; depth < 25; depth++) deepest = await newSession({ parent: deepest })
    expectOk(await newSessionLog(api, { parent: deepest }).then((log) => log.batch(mixedEntries(9))), 201)
    expectOk(await api.deleteSession(parent))
    expect(idsOf(expectOk(await api.listSessions()).items)).toEqual([bystander])
    expectError(await api.deleteSession(deepest), 404, 'session_not_found')
    const left = 'SELECT session_id FROM erased_sessions WHERE project_id = $1'
    expect(await queryRows(service.databaseUrl, left, [project.id])).toEqual([])
    await expectSound()
  })

  it("with its user takes other users' sessions below it along, counted in the receipt", async () => {
    const parent = await newSession({ user: 'ada' })
    const child = await newSessionLog(api, { user: 'bob', parent })
    expectOk(await child.batch(mixedEntries(4)), 201)
    const grandchild = await newSession({ parent: child.id })
    const own = await newSession({ user: 'ada', parent: grandchild })
    const kept = await newSession({ user: 'bob' })
    expect(expectOk(await erase('ada')).deleted).toMatchObject({ sessions: 4, entries: 4 })
    expect(await Promise.all([parent, child.id, grandchild, own].map(statusOf))).toEqual([404, 404, 404, 404])
    expect(await walk({ user: 'bob' })).toEqual([kept])
  })

  it('leaves none that others create below it meanwhile, at any node', async () => {
    for (let round = 0; round < 6; round++) {
      const parent = await newSession({ user: 'ada' })
      await newChildren(parent, 3)
      const creating = Array.from({ length: 12 }, (_, n) =>
        (n % 2 ? api : other).createSession({ parent, user: n % 3 ? 'ada' : undefined }),
      )
      const gone = round % 2 ? erase('ada') : other.deleteSession(parent)
      for (const answer of await Promise.all(creating)) expect([201, 404]).toContain(answer.status)
      expectOk(await gone)
      expect(await walk({ parent })).toEqual([])
    }
    await expectSound()
  })

  it('waits for a session that is being created below it, and takes that along', async () => {
    const parent = await newSession()
    const use_uuid = randomUUID()
    const [created, deleted] = await withConnection(service.databaseUrl, async (connection) => {
      await connection.query('BEGIN')
      // The creation waits for this row, and by then holds its parent.
      await connection.query(
        `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at) VALUES ($1, $2, '{}', false, now())`,
        [project.id, use_uuid],
      )
      const waiting = (count: number) =>
        vi.waitFor(
          async () => expect(await lockWaits(service.databaseUrl, connection)).toBeGreaterThanOrEqual(count),
          { timeout: 15_000, interval: 20 },
        )
      const creating = api.createSession({ parent, use_uuid })
      await waiting(1)
      const deleting = other.deleteSession(parent)
      await waiting(2)
      await connection.query('ROLLBACK')
      return Promise.all([creating, deleting])
    })
    expectOk(created, 201)
    expectOk(deleted)
    expect(await statusOf(use_uuid)).toBe(404)
  })
})
