import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { issueToken } from '../harness/tokens.ts'

const REVOCATION_MS_MAX = 5_000

const service = useSharedService()
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

const revoke = async (key: string) =>
  expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}/tokens/${key}`))

/** A key that nothing else uses, and a token for a session that it made. */
async function tokenOfAKey() {
  const { id: key, token: secret } = await issue({ name: 'of a page' })
  const owner = await service.newClient({ token: secret })
  const { id } = expectOk(await owner.createSession({}), 201)
  const token = await tokenFor(owner, { session_id: id }, ['read'])
  return { key, token, id, path: `/api/v1/session/${id}` }
}

const issue = (body: { name: string; scopes?: string[]; expires_at?: string }) =>
  issueToken(service.adminClient(), project.id, body)

describe('a project with several tokens', () => {
  it('is reached with each of them, at every node', async () => {
    const { token } = await issue({ name: 'second' })
    const first = await service.newClient({ token: project.token })
    const second = await service.newClient({ token, node: service.secondNode })
    const session = expectOk(await first.createSession({}), 201)
    expect(expectOk(await second.getSession(session.id))).toEqual(session)
  })

  it('refuses a revoked one within five seconds at every node, and keeps the others', async () => {
    const { id, token } = await issue({ name: 'to be revoked' })
    const clients = await Promise.all(
      [service.node, service.secondNode].map((node) => service.newClient({ token, node })),
    )
    for (const client of clients) expectOk(await client.listSessions())
    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}/tokens/${id}`))
    const revokedAt = Date.now()
    const refused = clients.map((client) =>
      vi.waitFor(async () => expectError(await client.listSessions(), 401, 'unauthorized'), {
        timeout: REVOCATION_MS_MAX,
        interval: 50,
      }),
    )
    await Promise.all(refused)
    expect(Date.now() - revokedAt).toBeLessThanOrEqual(REVOCATION_MS_MAX)
    const kept = await service.newClient({ token: project.token, node: service.secondNode })
    expectOk(await kept.listSessions())
  })

  it('ends tokens for sessions within five seconds at every node, with the key that made them', async () => {
    const { key, token, path } = await tokenOfAKey()
    const clients = [service.node, service.secondNode].map((node) => service.rawClient(token, node))
    for (const client of clients) expectOk(await client.request('GET', path))
    await revoke(key)
    const refused = clients.map((client) =>
      vi.waitFor(async () => expectError(await client.request('GET', path), 401, 'unauthorized'), {
        timeout: REVOCATION_MS_MAX,
        interval: 50,
      }),
    )
    await Promise.all(refused)
  })

  it('ends their tails as soon, whenever these were opened', async () => {
    // Nodes look again and again whether tails may go on: some are opened right after that, and some right before.
    const lasted = Array.from({ length: 8 }, async (_, at) => {
      await sleep(at * 250)
      const { key, token, id } = await tokenOfAKey()
      const { url } = [service.node, service.secondNode][at % 2]!
      const tail = await openTail(url, token, id)
      expect(tail.status).toBe(200)
      await revoke(key)
      const revokedAt = Date.now()
      await tail.whenEnded(4 * REVOCATION_MS_MAX)
      return Date.now() - revokedAt
    })
    expect(Math.max(...(await Promise.all(lasted)))).toBeLessThanOrEqual(REVOCATION_MS_MAX)
  })

  it('refuses one that expired, with the same answer as an unknown one', async () => {
    const expires_at = new Date(Date.now() + 8_000).toISOString()
    const { token } = await issue({ name: 'short-lived', expires_at })
    const client = await service.newClient({ token })
    expectOk(await client.listSessions())
    await vi.waitFor(async () => expectError(await client.listSessions(), 401, 'unauthorized'), {
      timeout: 20_000,
      interval: 100,
    })
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at))
    const unknown = await service.rawClient('sk-unknown').request('GET', '/api/v1/session')
    expect((await client.listSessions()).text).toBe(unknown.text)
  })

  it('accepts one that expires later', async () => {
    const { token } = await issue({ name: 'later', expires_at: '2999-01-01T00:00:00Z' })
    expectOk(await (await service.newClient({ token })).listSessions())
  })
})

describe('scopes', () => {
  it('let a token do what it is for', async () => {
    const reader = await service.newClient({ token: (await issue({ name: 'r', scopes: ['read'] })).token })
    const writer = await service.newClient({ token: (await issue({ name: 'w', scopes: ['write'] })).token })
    const session = expectOk(await writer.createSession({}), 201)
    expectOk(await writer.appendEvent(session.id, { type: 'note', data: {} }))
    expectOk(await reader.getSession(session.id))
    expectOk(await reader.listSessions())
    expect(expectOk(await reader.listEvents(session.id)).items).toHaveLength(1)
  })
})
