import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { newPerson } from '../harness/people.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { issueToken } from '../harness/tokens.ts'

type Row = Record<string, unknown> & { id: string }

/** A node notices a change within 5 seconds; a machine under load takes longer. */
const soon = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 20_000, interval: 100 })

const service = useSharedService()
let project: Project
let admin: HttpClient
let api: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  const key = await issueToken(service.adminClient(), project.id, { name: 'admin', scopes: ['admin'] })
  admin = service.rawClient(key.token)
})

const person = async (role: string, more?: Parameters<typeof newPerson>[3]) => {
  const made = await newPerson(service.databaseUrl, project.id, role, more)
  return { ...made, client: service.rawClient(made.token) }
}
const invite = (email: string, role = 'member') =>
  admin.request<Row>('POST', '/api/v1/members', { body: { email, role } })
const members = async () => expectOk(await admin.request<{ items: Row[] }>('GET', '/api/v1/members')).items
const change = (id: string, role: string, by = admin) =>
  by.request<Row>('PATCH', `/api/v1/members/${id}`, { body: { role } })
const remove = (id: string, by = admin) => by.request<object>('DELETE', `/api/v1/members/${id}`)
const statusOf = async (client: HttpClient, path: string, method = 'GET', body?: object) =>
  (await client.request(method, `/api/v1${path}`, body && { body })).status

describe('a member', () => {
  it('is invited by an address once, listed, changed and removed, and the audit names it', async () => {
    const email = `Ada-${randomUUID()}@Example.com`
    const made = expectOk(await invite(email), 201)
    expect(made).toMatchObject({
      email: email.toLowerCase(),
      role: 'member',
      is_from_group: false,
      has_signed_in: false,
      project_id: project.id,
    })
    expectError(await invite(email.toLowerCase(), 'admin'), 409, 'member_exists')
    expect(expectOk(await change(made.id, 'viewer'))).toEqual({ ...made, role: 'viewer' })
    expect(await members()).toEqual([{ ...made, role: 'viewer' }])
    expectOk(await remove(made.id))
    expectError(await remove(made.id), 404, 'member_not_found')
    expect(await members()).toEqual([])
    const acts = await queryRows<{ action: string; actor: string }>(
      service.databaseUrl,
      `SELECT action, actor FROM audit WHERE project_id = $1 AND action LIKE 'member.%' ORDER BY seq`,
      [project.id],
    )
    expect(acts.map(({ action }) => action)).toEqual(['member.invite', 'member.change', 'member.remove'])
    for (const { actor } of acts) expect(actor).toMatch(/^key [0-9a-f-]{36}, from /)
  })

  it.each([
    [{ email: 'a@b', role: 'owner' }, '/role'],
    [{ email: 'nobody', role: 'viewer' }, '/email'],
    [{ email: 'a b@c', role: 'viewer' }, '/email'],
    [{ email: `${'a'.repeat(250)}@b.example`, role: 'viewer' }, '/email'],
    [{ email: 'a@b', role: 'viewer', subject: 'x' }, '/subject'],
  ])('is refused as %j', async (body, place) => {
    expectError(await admin.request('POST', '/api/v1/members', { body }), 400, 'invalid_request', place)
  })

  it('of another project is found neither by its id nor in the list', async () => {
    const { member_id } = await person('viewer')
    const other = await service.newProject()
    const key = await issueToken(service.adminClient(), other.id, { name: 'admin', scopes: ['admin'] })
    const stranger = service.rawClient(key.token)
    expectError(await change(member_id, 'admin', stranger), 404, 'member_not_found')
    expectError(await remove(member_id, stranger), 404, 'member_not_found')
    expect(expectOk(await stranger.request<{ items: Row[] }>('GET', '/api/v1/members')).items).toEqual([])
    expect(await members()).toHaveLength(1)
  })
})

describe('the last administrator', () => {
  it('can neither be removed nor changed, whoever was only invited', async () => {
    const ada = await person('admin')
    expectOk(await invite('someone@example.com', 'admin'), 201)
    expectError(await remove(ada.member_id, ada.client), 409, 'last_admin')
    expectError(await change(ada.member_id, 'member', ada.client), 409, 'last_admin')
    const bob = await person('admin')
    expectOk(await remove(ada.member_id, bob.client))
    await soon(async () => expect(await statusOf(ada.client, '/ping')).toBe(401))
  })

  it('stays when two remove each other at once', async () => {
    const [ada, bob] = [await person('admin'), await person('admin')]
    const answers = await Promise.all([remove(bob.member_id, ada.client), remove(ada.member_id, bob.client)])
    const [first, second] = answers.map(({ status }) => status).sort()
    // Who was removed before the request was looked at is nobody any more.
    expect([first, second === 401 ? 409 : second]).toEqual([200, 409])
    expect(await members()).toHaveLength(1)
  })
})

describe("a person's token", () => {
  it('never allows more than the role of the moment, and neither do tokens that it made', async () => {
    const session = expectOk(await api.createSession({}), 201).id
    const ada = await person('admin')
    await person('admin')
    const made = await tokenFor(ada.client as ApiClient, { session_id: session }, ['read', 'append'])
    const client = service.rawClient(made)
    const event = { type: 'a', data: {} }
    const append = (by: HttpClient) => statusOf(by, `/session/${session}/events`, 'POST', event)
    expect([await append(ada.client), await append(client)]).toEqual([200, 200])
    expectOk(await change(ada.member_id, 'viewer'))
    await soon(async () => expect([await append(ada.client), await append(client)]).toEqual([403, 403]))
    expect(await statusOf(client, `/session/${session}/events`)).toBe(200)
    expect(await statusOf(ada.client, '/members')).toBe(403)
    expectOk(await change(ada.member_id, 'member'))
    await soon(async () => expect(await append(client)).toBe(200))
    expect(await statusOf(ada.client, `/session/${session}`, 'DELETE')).toBe(403)
    expectOk(await remove(ada.member_id))
    await soon(async () => expect([await append(ada.client), await append(client)]).toEqual([401, 401]))
  })

  it('is narrower than the role where it was made so', async () => {
    const { client } = await person('admin', { scopes: ['read'] })
    expect(await statusOf(client, '/session')).toBe(200)
    expect(await statusOf(client, '/members')).toBe(403)
    expect(await statusOf(client, `/session/${NOBODYS_ID}`, 'DELETE')).toBe(403)
  })

  it('ends with what the groups gave', async () => {
    const { client, member_id } = await person('viewer')
    expect(await statusOf(client, '/session')).toBe(200)
    await queryRows(
      service.databaseUrl,
      `UPDATE members SET invited_role = NULL, group_role = 'viewer', group_until = now() WHERE id = $1`,
      [member_id],
    )
    await soon(async () => expect(await statusOf(client, '/session')).toBe(401))
    expect((await members())[0]).toMatchObject({ role: null, is_from_group: true })
  })
})

describe('a personal token', () => {
  const make = (client: HttpClient, body: object = {}) =>
    client.request<Row & { token: string }>('POST', '/api/v1/personal_tokens', {
      body: { name: 'laptop', expires_in_days: 30, ...body },
    })

  it('is made by whoever is in the console, once for all to see, and revoked', async () => {
    const { client } = await person('member', { is_in_console: true })
    const made = expectOk(await make(client), 201)
    expect(made.token).toMatch(/^pat-annals-[\w-]{43}-[\w-]{6}$/)
    const days = (Date.parse(String(made.expires_at)) - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(29.9)
    expect(days).toBeLessThanOrEqual(30)
    const own = service.rawClient(made.token)
    expect(await statusOf(own, '/session')).toBe(200)
    const rows = await queryRows(
      service.databaseUrl,
      'SELECT k::text AS row FROM api_keys k WHERE k.id = $1',
      [made.id],
    )
    expect(JSON.stringify(rows)).not.toContain(made.token.slice(11, 40))
    const listed = async () =>
      expectOk(await own.request<{ items: Row[] }>('GET', '/api/v1/personal_tokens')).items
    const { token: _, ...shown } = made
    expect(await listed()).toEqual([shown])
    const another = await person('member')
    const path = `/api/v1/personal_tokens/${made.id}`
    expectError(await another.client.request('DELETE', path), 404, 'token_not_found')
    expectOk(await own.request<Row>('DELETE', path))
    await soon(async () => expect(await statusOf(own, '/session')).toBe(401))
  })

  it('makes no other, exceeds no role, and expires within 366 days', async () => {
    const pat = await person('admin')
    expectError(await make(pat.client), 403, 'insufficient_scope')
    expectError(await make(service.rawClient(project.token)), 403, 'insufficient_scope')
    const viewer = await person('viewer', { is_in_console: true })
    expectError(await make(viewer.client, { scopes: ['write'] }), 403, 'insufficient_scope')
    for (const expires_in_days of [0, 367, undefined])
      expectError(await make(viewer.client, { expires_in_days }), 400, 'invalid_request')
  })
})
