import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useSharedService } from '../harness/service.ts'
import { withConnection } from '../harness/sql.ts'
import { type IssuedToken, issueToken } from '../harness/tokens.ts'

interface NewProject {
  project: { id: string; name: string; created_at: string }
  token: string
}

const PROJECTS = '/admin/v1/projects'

const service = useSharedService()
let admin: HttpClient

beforeAll(() => {
  admin = service.adminClient()
})

const newName = () => `admin-${randomBytes(8).toString('hex')}`
const create = async (name = newName()) =>
  expectOk(await admin.request<NewProject>('POST', PROJECTS, { body: { name } }), 201)
const listAll = async <T>(path: string) => {
  const { items } = expectOk(await admin.request<{ items: T[] }>('GET', path))
  return items
}

describe('an expiry that no answer could show', () => {
  it.each(['0000-01-01T00:00:00Z', '9999-12-31T23:59:60Z', '9999-12-31T23:59:59-05:00'])(
    'is refused, and makes no token: %s',
    async (expires_at) => {
      const { project } = await create()
      const path = `${PROJECTS}/${project.id}/tokens`
      const answer = await admin.request('POST', path, { body: { name: 'odd', expires_at } })
      expectError(answer, 400, 'invalid_request', '/expires_at')
      expect(await listAll(path)).toHaveLength(1)
    },
  )
})

describe('an expiry far from UTC', () => {
  it('is taken as the time that it is', async () => {
    const { project } = await create()
    const issued = await issueToken(admin, project.id, {
      name: 'far',
      expires_at: '2990-01-01T00:00:00+19:22',
    })
    expect(issued.expires_at).toBe('2989-12-31T04:38:00.000000Z')
  })
})

describe('a token for a project that is being erased', () => {
  it('is refused as one for a project that there is not', async () => {
    const { project } = await create()
    await withConnection(service.databaseUrl, async (connection) => {
      await connection.query('BEGIN')
      await connection.query('SELECT id FROM projects WHERE id = $1 FOR UPDATE', [project.id])
      const issuing = admin.request('POST', `${PROJECTS}/${project.id}/tokens`, { body: { name: 'late' } })
      await vi.waitFor(async () => {
        // More than one where files share a database: Citus lets one at a time write to such a table.
        expect(await lockWaits(service.databaseUrl, connection)).toBeGreaterThan(0)
      }, 15_000)
      await connection.query('DELETE FROM api_keys WHERE project_id = $1', [project.id])
      await connection.query('DELETE FROM projects WHERE id = $1', [project.id])
      await connection.query('COMMIT')
      expectError(await issuing, 404, 'project_not_found')
    })
  })
})

describe('the admin API', () => {
  it('makes a project with a first token that opens it', async () => {
    const name = newName()
    const { project, token } = await create(name)
    expect(project).toMatchObject({
      id: expect.stringMatching(UUID),
      name,
      created_at: expect.stringMatching(TIMESTAMP),
    })
    const api = await service.newClient({ token })
    expect(expectOk(await api.createSession({}), 201).project_id).toBe(project.id)
  })

  it('lists projects, without any secret', async () => {
    const { project, token } = await create()
    const answer = await admin.request<{ items: Array<{ id: string }> }>('GET', PROJECTS)
    expect(expectOk(answer).items).toContainEqual(
      expect.objectContaining({ id: project.id, name: project.name }),
    )
    expect(answer.text).not.toContain(token)
    expect(answer.text).not.toContain('sk-')
  })

  it('refuses a second project of the same name, and names that do not fit', async () => {
    const { project } = await create()
    expectError(
      await admin.request('POST', PROJECTS, { body: { name: project.name } }),
      409,
      'project_exists',
    )
    for (const body of [{}, { name: '' }, { name: 5 }, { name: 'a\u0000' }, { name: 'x'.repeat(10_000) }]) {
      expectError(await admin.request('POST', PROJECTS, { body }), 400, 'invalid_request', 'name')
    }
    const extra = { name: newName(), surprise: 1 }
    expectError(await admin.request('POST', PROJECTS, { body: extra }), 400, 'invalid_request', 'surprise')
  })

  it('issues tokens with name, scopes and expiry, shows each secret once, and lists them without', async () => {
    const { project } = await create()
    const issued = await issueToken(admin, project.id, {
      name: 'deploy',
      scopes: ['read'],
      expires_at: '2999-01-01T00:00:00Z',
    })
    expect(issued).toMatchObject({
      id: expect.stringMatching(UUID),
      name: 'deploy',
      scopes: ['read'],
      expires_at: '2999-01-01T00:00:00.000000Z',
      token: expect.stringMatching(/^sk-/),
    })
    const unlimited = await issueToken(admin, project.id, { name: 'all' })
    expect(unlimited).toMatchObject({ expires_at: null })
    expect([...unlimited.scopes].sort()).toEqual(['read', 'write'])
    const path = `${PROJECTS}/${project.id}/tokens`
    const listed = await listAll<IssuedToken>(path)
    expect(listed.map((token) => token.name)).toEqual(expect.arrayContaining(['deploy', 'all']))
    expect(listed).toHaveLength(3)
    expect((await admin.request('GET', path)).text).not.toContain('sk-')
  })

  it.each<[string, object, string]>([
    ['no name', {}, 'name'],
    ['an unknown scope', { name: 'x', scopes: ['owner'] }, 'scopes'],
    ['scopes that are no list', { name: 'x', scopes: 'read' }, 'scopes'],
    ['no scope at all', { name: 'x', scopes: [] }, 'scopes'],
    ['an expiry that is no time', { name: 'x', expires_at: 'tomorrow' }, 'expires_at'],
    ['an expiry that does not exist', { name: 'x', expires_at: '2027-02-30T00:00:00Z' }, 'expires_at'],
    ['an unknown field', { name: 'x', scope: ['read'] }, 'scope'],
  ])('refuses a token with %s and names the field', async (_case, body, field) => {
    const { project } = await create()
    const answer = await admin.request('POST', `${PROJECTS}/${project.id}/tokens`, { body })
    expectError(answer, 400, 'invalid_request', field)
  })

  it('revokes a token of its project only', async () => {
    const [mine, other] = [await create(), await create()]
    const { id, token } = await issueToken(admin, mine.project.id, { name: 'gone' })
    const wrongProject = await admin.request('DELETE', `${PROJECTS}/${other.project.id}/tokens/${id}`)
    expectError(wrongProject, 404, 'token_not_found')
    expectOk(await admin.request('DELETE', `${PROJECTS}/${mine.project.id}/tokens/${id}`))
    const api = await service.newClient({ token })
    await vi.waitFor(async () => expectError(await api.listSessions(), 401, 'unauthorized'), 5_000)
    expectOk(await (await service.newClient({ token: mine.token })).listSessions())
  })

  it('deletes a project with its tokens and data, and no other', async () => {
    const [doomed, kept] = [await create(), await create()]
    const api = await service.newClient({ token: doomed.token })
    const session = expectOk(await api.createSession({ user: 'ada' }), 201)
    expectOk(await api.appendEvent(session.id, { type: 'note', data: {} }))
    expectOk(await api.createLearningSpace({ user: 'ada' }), 201)
    expectOk(await admin.request('DELETE', `${PROJECTS}/${doomed.project.id}`))
    await vi.waitFor(async () => expectError(await api.listSessions(), 401, 'unauthorized'), 5_000)
    const ids = (await listAll<{ id: string }>(PROJECTS)).map((project) => project.id)
    expect(ids).not.toContain(doomed.project.id)
    expect(ids).toContain(kept.project.id)
    expectOk(await (await service.newClient({ token: kept.token })).listSessions())
  })

  it('answers 404 for a project that does not exist and 400 for an id that is none', async () => {
    const path = `${PROJECTS}/${NOBODYS_ID}`
    expectError(await admin.request('DELETE', path), 404, 'project_not_found')
    expectError(await admin.request('GET', `${path}/tokens`), 404, 'project_not_found')
    const body = { name: 'x' }
    expectError(await admin.request('POST', `${path}/tokens`, { body }), 404, 'project_not_found')
    expectError(await admin.request('DELETE', `${PROJECTS}/x`), 400, 'invalid_request')
  })

  it('takes the admin token only', async () => {
    const { token } = await create()
    for (const caller of [service.rawClient(), service.rawClient(token), service.rawClient('admin')]) {
      const answer = await caller.request('GET', PROJECTS)
      expectError(answer, 401, 'unauthorized')
      expect(answer.headers['www-authenticate']).toBe('Bearer')
      expectError(await caller.request('POST', PROJECTS, { body: { name: newName() } }), 401, 'unauthorized')
    }
  })
})
