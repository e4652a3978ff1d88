import { beforeAll, describe, expect, it, vi } from 'vitest'
import { ADMIN_TOKEN } from '../harness/annals_process.ts'
import { type ConsoleSession, consoleHeaders, signInToConsole } from '../harness/console_session.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { type IssuedToken, issueToken } from '../harness/tokens.ts'

const REVOKED_MS_MAX = 5_000
const service = useSharedService()
let project: Project
let session: ConsoleSession

const SESSIONS = '/console/api/v1/session'
const signIn = async (token: string) => (await signInToConsole(service.rawClient(), { token })).session
const newKey = (body: { scopes?: string[]; expires_at?: string } = {}): Promise<IssuedToken> =>
  issueToken(service.adminClient(), project.id, { name: 'person', ...body })
/** The status of a request with these cookies and headers, at one node or the other. */
const statusOf = async (headers: Record<string, string>, path = SESSIONS, node = service.node) =>
  (await service.rawClient(undefined, node).request('GET', path, { headers })).status
/** The same at each node. */
const statusesOf = (headers: Record<string, string>, path = SESSIONS) =>
  Promise.all(
    [service.node, service.secondNode].map((node) => statusOf(headers, path, node as typeof service.node)),
  )

beforeAll(async () => {
  project = await service.newProject()
  session = await signIn(project.token)
})

describe('a session of the console', () => {
  it('is a cookie that no script and no other site gets, and no other path than the console’s', () => {
    const [cookie, ...attributes] = session.set_cookie.split('; ')
    expect(cookie).toMatch(new RegExp(`^annals_${project.id}=sk-annals-`))
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/console', 'SameSite=Strict'])
    expect(cookie).not.toContain(project.token)
  })

  it('opens the project at every node, and only through the console', async () => {
    const headers = consoleHeaders(session.cookie, project.id)
    expect(await statusOf(headers)).toBe(200)
    expect(await statusOf(headers, SESSIONS, service.secondNode as typeof service.node)).toBe(200)
    expect(await statusOf(headers, '/api/v1/session')).toBe(401)
  })

  it.each([
    ['without the console’s header', { 'x-annals-console': undefined }],
    ['from a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['from a page of another port of this host', { 'sec-fetch-site': 'same-site' }],
    ['typed into the address', { 'sec-fetch-site': 'none' }],
    ['for another project', { 'x-annals-console': '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d' }],
    ['for the administration', { 'x-annals-console': 'admin' }],
  ])('is not accepted %s', async (_, change) => {
    const headers = { ...consoleHeaders(session.cookie, project.id), ...change }
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    expect(await statusOf(sent as Record<string, string>)).toBe(401)
    expect(await statusOf(sent as Record<string, string>, '/console/data/figures?ids=x')).toBe(401)
  })

  it('is not accepted under the name of another project, nor beside another one of its name', async () => {
    const other = await service.newProject()
    const planted = session.cookie.replace(project.id, other.id)
    expect(await statusOf(consoleHeaders(planted, other.id))).toBe(401)
    const twice = `${session.cookie}; annals_${project.id}=${other.token}`
    expect(await statusOf(consoleHeaders(twice, project.id))).toBe(401)
  })

  it('cannot be begun, listed or ended by a page that is not the console', async () => {
    const client = service.rawClient()
    const body = { token: project.token }
    expectError(await client.request('POST', '/console/sign_in', { body }), 401, 'unauthorized')
    const headers = { cookie: session.cookie, 'sec-fetch-site': 'cross-site', 'x-annals-console': 'none' }
    expectError(await client.request('GET', '/console/access', { headers }), 401, 'unauthorized')
    const options = { body: { of: project.id }, headers }
    expectError(await client.request('POST', '/console/sign_out', options), 401, 'unauthorized')
    expect(await statusOf(consoleHeaders(session.cookie, project.id))).toBe(200)
  })

  it('may do what its key may, and no more', async () => {
    const reader = await signIn((await newKey({ scopes: ['read'] })).token)
    expectOk(await reader.request('GET', SESSIONS))
    expectError(await reader.request('POST', SESSIONS, { body: {} }), 403, 'insufficient_scope')
    const writer = (
      await signInToConsole(service.rawClient(), { token: (await newKey({ scopes: ['write'] })).token })
    ).answer
    expectError(writer, 403, 'insufficient_scope')
    expect(writer.headers['set-cookie']).toBeUndefined()
  })

  it('ends within 5 seconds when its key is revoked, at every node', async () => {
    const key = await newKey()
    const { cookie } = await signIn(key.token)
    const headers = consoleHeaders(cookie, project.id)
    for (const node of [service.node, service.secondNode as typeof service.node])
      expect(await statusOf(headers, SESSIONS, node)).toBe(200)
    const path = `/admin/v1/projects/${project.id}/tokens/${key.id}`
    expectOk(await service.adminClient().request('DELETE', path))
    for (const node of [service.node, service.secondNode as typeof service.node])
      await vi.waitFor(async () => expect(await statusOf(headers, SESSIONS, node)).toBe(401), {
        timeout: REVOKED_MS_MAX,
        interval: 100,
      })
  })

  it('ends at every node at once when somebody signs out, also for whoever copied the cookie, and its key stays', async () => {
    const key = await newKey()
    const left = await signIn(key.token)
    const headers = consoleHeaders(left.cookie, project.id)
    expect(await statusesOf(headers)).toEqual([200, 200])
    const answer = await left.request('POST', '/console/sign_out', { body: { of: project.id } })
    expectOk(answer)
    expect(String(answer.headers['set-cookie'])).toContain('Max-Age=0')
    expect(await statusesOf(headers)).toEqual([401, 401])
    expectOk(await service.rawClient(key.token).request('GET', '/api/v1/session'))
  })

  it('is replaced by signing in again: the former cookie is worth nothing', async () => {
    const key = await newKey()
    const before = await signIn(key.token)
    const again = await before.request('POST', '/console/sign_in', { body: { token: key.token } })
    expectOk(again)
    expectError(await before.request('GET', SESSIONS), 401, 'unauthorized')
  })

  it('is put off by use, and ends after 30 days in any case', async () => {
    const key = await newKey()
    const used = await signIn(key.token)
    const rows = () =>
      queryRows<{ id: string; hours: number }>(
        service.databaseUrl,
        `SELECT k.id, round(extract(epoch FROM k.expires_at - now()) / 3600)::int AS hours FROM api_keys k WHERE k.parent_id = $1`,
        [key.id],
      )
    const set = (column: string, hours: number) =>
      execute(
        service.databaseUrl,
        `UPDATE api_keys SET ${column} = now() + make_interval(hours => $2) WHERE parent_id = $1`,
        [key.id, hours],
      )
    expect((await rows())[0]!.hours).toBe(12)
    await set('expires_at', 1)
    expect(expectOk(await used.request('GET', '/console/access'))).toMatchObject({
      projects: [{ project_id: project.id, project: project.name, scopes: ['read', 'write'] }],
      is_admin: false,
    })
    expect((await rows())[0]!.hours).toBe(12)
    await set('created_at', -30 * 24 + 2)
    expectOk(await used.request('GET', '/console/access'))
    expect((await rows())[0]!.hours).toBe(2)
  })
})

describe('the administrator’s session', () => {
  const PROJECTS = '/console/admin/v1/projects'

  it('opens the administration at every node, and no project', async () => {
    const { session: admin } = await signInToConsole(service.rawClient(), { token: ADMIN_TOKEN })
    expect(admin.set_cookie).not.toContain(ADMIN_TOKEN)
    const headers = consoleHeaders(admin.cookie, 'admin')
    expect(await statusOf(headers, PROJECTS)).toBe(200)
    expect(await statusOf(headers, PROJECTS, service.secondNode as typeof service.node)).toBe(200)
    expect(await statusOf(headers, '/admin/v1/projects')).toBe(401)
    expect(await statusOf(headers)).toBe(401)
    expect(await statusOf({ ...headers, 'sec-fetch-site': 'same-site' }, PROJECTS)).toBe(401)
  })

  it('cannot be forged, and not be prolonged by whoever has it', async () => {
    const { session: admin } = await signInToConsole(service.rawClient(), { token: ADMIN_TOKEN })
    const [id, signature] = admin.cookie.split('=')[1]!.split('.')
    const other = id!.replace(/^./, (digit) => (digit === 'f' ? '0' : 'f'))
    for (const value of [`${other}.${signature}`, `${id}.`, id, `${id}.${signature}x`, 'x', ''])
      expect(await statusOf(consoleHeaders(`annals_admin=${value}`, 'admin'), PROJECTS), value).toBe(401)
  })

  it.each([
    ['somebody signs out', '/console/sign_out', { of: 'admin' }],
    ['the administrator signs in again', '/console/sign_in', { token: ADMIN_TOKEN }],
  ])('ends at every node at once when %s, and its cookie cannot be renewed', async (_, path, body) => {
    const { session: admin } = await signInToConsole(service.rawClient(), { token: ADMIN_TOKEN })
    const headers = consoleHeaders(admin.cookie, 'admin')
    expect(await statusesOf(headers, PROJECTS)).toEqual([200, 200])
    expectOk(await admin.request('POST', path, { body }))
    expect(await statusesOf(headers, PROJECTS)).toEqual([401, 401])
    const access = await admin.request('GET', '/console/access')
    expect(expectOk(access)).toMatchObject({ is_admin: false })
    expect(access.headers['set-cookie']).toBeUndefined()
    expect(await statusesOf(headers, PROJECTS)).toEqual([401, 401])
  })

  it('is put off by use, and ends after 30 days in any case', async () => {
    const { session: admin } = await signInToConsole(service.rawClient(), { token: ADMIN_TOKEN })
    const [id] = admin.cookie.split('=')[1]!.split('.')
    const set = (column: string, hours: number) =>
      execute(
        service.databaseUrl,
        `UPDATE admin_sessions SET ${column} = now() + make_interval(hours => $2) WHERE id = $1`,
        [id, hours],
      )
    const use = async () => {
      expect(expectOk(await admin.request('GET', '/console/access'))).toMatchObject({ is_admin: true })
      const [row] = await queryRows<{ hours: number }>(
        service.databaseUrl,
        'SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM admin_sessions WHERE id = $1',
        [id],
      )
      return row!.hours
    }
    await set('expires_at', 1)
    expect(await use()).toBe(12)
    await set('created_at', -30 * 24 + 2)
    expect(await use()).toBe(2)
    await set('expires_at', 0)
    expect(await statusesOf(consoleHeaders(admin.cookie, 'admin'), PROJECTS)).toEqual([401, 401])
  })
})
