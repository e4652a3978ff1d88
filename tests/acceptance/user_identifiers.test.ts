import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

interface User {
  id: string
  project_id: string
  identifier: string
  created_at: string
  updated_at: string
}
interface Erased {
  deleted: { sessions: number; entries: number; learning_spaces: number }
}

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const pathOf = (identifier: string) => `/api/v1/user/${encodeURIComponent(identifier)}`
const usersOf = (client: ApiClient, query?: Query) =>
  client.request<Page<User>>('GET', '/api/v1/user/ls', { query })
const erase = (identifier: string, client = api) => client.request<Erased>('DELETE', pathOf(identifier))
const countsOf = (identifier: string, client = api) =>
  client.request<{ counts: Record<string, number> }>('GET', `${pathOf(identifier)}/resources`)
const counts = (sessions_count: number, learning_spaces_count: number) => ({
  counts: { sessions_count, learning_spaces_count, disks_count: 0, skills_count: 0 },
})

describe('an identifier', () => {
  const ODD = [
    '/',
    'a/b/c',
    '%2F',
    '%',
    '%zz',
    '...',
    '.a',
    '../..',
    '../session',
    ' ',
    ' a b ',
    '+',
    'a+b',
    '?x=1',
    '#',
    '&',
    ';',
    "' OR 1=1 --",
    '\\',
    '"',
    'ls',
    'resources',
    'ls/resources',
    'Größe 😀',
    'e\u0301',
    'é',
    '\u202e',
    '\u2066a\u2069',
    '\u200b',
    'a\u200d\u200cb',
    '\ufeff',
    '..%2F..%2F',
    '%2e%2e',
    '__proto__',
    'constructor',
    '\n',
    'null',
    NOBODYS_ID,
    '😀'.repeat(256),
    'x'.repeat(256),
  ]
  it.each(ODD)('of any characters names one user everywhere: %j', async (identifier) => {
    const client = await service.newClient()
    const session = expectOk(await client.createSession({ user: identifier }), 201)
    expect(expectOk(await usersOf(client)).items).toMatchObject([{ id: session.user_id, identifier }])
    expect(expectOk(await client.listSessions({ user: identifier })).items).toEqual([session])
    expect(expectOk(await countsOf(identifier, client))).toEqual(counts(1, 0))
    expect(expectOk(await erase(identifier, client)).deleted.sessions).toBe(1)
    expect(expectOk(await usersOf(client)).items).toEqual([])
  })

  it.each(['.', '..'])('that a URL takes for a directory is 400, and never comes to be: %s', async (user) => {
    const client = await service.newClient()
    expectError(await client.createSession({ user }), 400, 'invalid_request', '/user')
    expectError(await client.createLearningSpace({ user }), 400, 'invalid_request', '/user')
    expectError(await client.listSessions({ user }), 400, 'invalid_request', 'user')
    expectError(await erase(user, client), 400, 'invalid_request', 'identifier')
    expectError(await countsOf(user, client), 400, 'invalid_request', 'identifier')
    expect(expectOk(await usersOf(client)).items).toEqual([])
  })

  it.each(['\u0000', 'a\u0000b'])('with NUL in it is 400, and never comes to be: %j', async (user) => {
    const client = await service.newClient()
    expectError(await client.createSession({ user }), 400, 'invalid_request', '/user')
    expectError(await client.createLearningSpace({ user }), 400, 'invalid_request', '/user')
    expectError(await client.listSessions({ user }), 400, 'invalid_request', 'user')
    expectError(await erase(user, client), 400, 'invalid_request', 'identifier')
    expectError(await countsOf(user, client), 400, 'invalid_request', 'identifier')
    expect(expectOk(await usersOf(client)).items).toEqual([])
  })

  it.each(['x', '😀'])('of 257 characters is 400: %s', async (character) => {
    const user = character.repeat(257)
    expectError(await api.createSession({ user }), 400, 'invalid_request', 'user')
    expectError(await api.createLearningSpace({ user }), 400, 'invalid_request', 'user')
    expectError(await api.listSessions({ user }), 400, 'invalid_request', 'user')
    for (const answer of [await countsOf(user), await erase(user)])
      expectError(answer, 400, 'invalid_request', 'identifier')
  })
})
