import { beforeAll, describe, expect, it } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

const listWith = (authorization: string | undefined) =>
  service.rawClient().request('GET', '/api/v1/session', {
    headers: authorization === undefined ? {} : { Authorization: authorization },
  })

function expectUnauthorized(answer: Answer<unknown>): void {
  expectError(answer, 401, 'unauthorized')
  expect(answer.headers['www-authenticate']).toBe('Bearer')
}

describe('the Authorization header', () => {
  it('with a token of a project opens that project', async () => {
    expectOk(await listWith(`Bearer ${project.token}`))
  })

  it.each<[string, (token: string) => string | undefined]>([
    ['missing', () => undefined],
    ['empty', () => ''],
    ['of the Basic scheme', (token) => `Basic ${Buffer.from(`user:${token}`).toString('base64')}`],
    ['with the token in the Basic scheme', (token) => `Basic ${token}`],
    ['with bearer in lower case', (token) => `bearer ${token}`],
    ['with BEARER in upper case', (token) => `BEARER ${token}`],
    ['with two spaces', (token) => `Bearer  ${token}`],
    ['with a tab', (token) => `Bearer\t${token}`],
    ['without a space', (token) => `Bearer${token}`],
    ['with the scheme alone', () => 'Bearer'],
    ['with the token alone', (token) => token],
    ['with more behind the token', (token) => `Bearer ${token} x`],
    ['with two tokens', (token) => `Bearer ${token},${token}`],
    ['with a token in another case', (token) => `Bearer ${token.toUpperCase()}`],
    ['with a token cut short', (token) => `Bearer ${token.slice(0, -1)}`],
    ['with a token that is longer', (token) => `Bearer ${token}0`],
    ['with a token of ten thousand characters', () => `Bearer sk-${'a'.repeat(10_000)}`],
    ['with a token nobody was given', () => 'Bearer sk-0000000000000000000000000000000000000000'],
    ['with an SQL fragment', () => "Bearer sk-' OR true --"],
  ])('%s is 401', async (_case, make) => {
    expectUnauthorized(await listWith(make(project.token)))
  })

  it.each(['token', 'access_token', 'authorization', 'api_key', 'key'])(
    'has no place in the URL: %s',
    async (name) => {
      const api = await service.newClient({ token: project.token })
      const { id } = expectOk(await api.createSession({}), 201)
      const narrow = await tokenFor(api, { session_id: id }, ['read'])
      for (const secret of [project.token, narrow, `Bearer ${narrow}`])
        for (const headers of [{}, { Accept: 'text/event-stream' }]) {
          const options = { query: { [name]: secret }, headers }
          expectUnauthorized(
            await service.rawClient().request('GET', `/api/v1/session/${id}/timeline`, options),
          )
        }
    },
  )

  it('is asked for on every path under /api/v1', async () => {
    const caller = service.rawClient()
    const paths: Array<[string, string]> = [
      ['GET', '/api/v1/ping'],
      ['GET', '/api/v1/session'],
      ['POST', '/api/v1/session'],
      ['GET', `/api/v1/session/${NOBODYS_ID}`],
      ['DELETE', `/api/v1/session/${NOBODYS_ID}`],
      ['GET', `/api/v1/session/${NOBODYS_ID}/events`],
      ['POST', `/api/v1/session/${NOBODYS_ID}/events`],
      ['POST', '/api/v1/learning_spaces'],
      ['GET', `/api/v1/learning_spaces/${NOBODYS_ID}`],
    ]
    for (const [method, path] of paths) expectUnauthorized(await caller.request(method, path))
  })

  it('is looked at before the body, the parameters and the ids', async () => {
    const caller = service.rawClient('sk-unknown')
    expectUnauthorized(await caller.request('POST', '/api/v1/session', { rawBody: '{' }))
    expectUnauthorized(await caller.request('GET', '/api/v1/session?limit=0'))
    expectUnauthorized(await caller.request('GET', '/api/v1/session/no-id'))
  })

  it('gets one and the same answer for every reason', async () => {
    const bodies = [undefined, 'Basic x', 'bearer x', 'Bearer sk-unknown', `Bearer  ${project.token}`].map(
      async (authorization) => (await listWith(authorization)).text,
    )
    expect(new Set(await Promise.all(bodies)).size).toBe(1)
  })
})

describe('a token', () => {
  it('looks like sk-… and carries at least 192 bits', () => {
    expect(project.token).toMatch(/^sk-[A-Za-z0-9_-]{32,}$/)
  })

  it('reaches the data of its own project only', async () => {
    const mine = await service.newClient({ token: project.token })
    const others = await service.newClient()
    const session = expectOk(await mine.createSession({ user: 'shared name' }), 201)
    expect(session.project_id).toBe(project.id)
    expect(expectOk(await others.listSessions({ user: 'shared name' })).items).toEqual([])
    expectError(await others.getSession(session.id), 404, 'session_not_found')
    expectError(await others.deleteSession(session.id), 404, 'session_not_found')
    expectOk(await mine.getSession(session.id))
  })

  it('of a project is not an admin token, nor the other way round', async () => {
    const admin = service.rawClient(project.token)
    expectUnauthorized(await admin.request('GET', '/admin/v1/projects'))
    expectUnauthorized(await service.adminClient().request('GET', '/api/v1/session'))
  })
})
