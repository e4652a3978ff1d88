import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { type DatabaseProxy, proxyDatabase } from '../harness/database_proxy.ts'
import { describedOperations, sampleOf } from '../harness/described_operations.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer, HttpClient } from '../harness/http_client.ts'
import { oneOfEach } from '../harness/one_of_each.ts'
import { type Project, useService } from '../harness/service.ts'
import type { SessionLog } from '../harness/session_log.ts'

const withIds = describedOperations.filter(({ path }) => path.includes('{'))
/**
 * Blobs are named by their bytes, which any project may send, and tools by what programs call them: `blobs.test.ts` and
 * `tools.test.ts` show that it gets no other's. Keys are revoked by a key with another scope: see below. Members and their
 * tokens are for people: see `people.test.ts`.
 */
const BY_NAME = [
  '/blobs/{sha256}',
  '/tools/{name}',
  '/keys/{token_id}',
  '/members/{member_id}',
  '/personal_tokens/{token_id}',
]
const operations = withIds.filter(
  ({ path }) => path.startsWith('/api/v1/') && !BY_NAME.some((name) => path.endsWith(name)),
)
const ofTheOperator = withIds.filter(({ path }) => path.startsWith('/admin/v1/'))

type Ids = Record<string, string>
const service = useService()
let owner: ApiClient
let stranger: ApiClient
let ownersProject: Project
let strangersProject: Project
let ownersLog: SessionLog
/** What the owner has, what the stranger has, and what nobody has, by the name of the path parameter. */
let owners: Ids
let strangers: Ids
let nobodys: Ids
let everything: string[]

beforeAll(async () => {
  ownersProject = await chainedProject()
  owner = await service.newClient({ token: ownersProject.token })
  strangersProject = await chainedProject()
  stranger = await service.newClient({ token: strangersProject.token })
  ;({ ids: owners, log: ownersLog } = await oneOfEach(service.node.url, owner, ownersProject.token))
  ;({ ids: strangers } = await oneOfEach(service.node.url, stranger, strangersProject.token))
  const unknown = Object.keys(owners).map((name) => [name, randomUUID()])
  nobodys = { ...Object.fromEntries(unknown), identifier: `user-${randomUUID()}` }
  everything = await everythingOfTheOwner()
})

/** Whose entries have proofs. */
async function chainedProject(): Promise<Project> {
  const project = await service.newProject()
  const path = `/admin/v1/projects/${project.id}`
  expectOk(await service.adminClient().request('PATCH', path, { body: { proof: true } }))
  return project
}

function call(client: HttpClient, { path, method, operation }: (typeof operations)[number], ids: Ids) {
  const real = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    if (ids[name] === undefined) throw new Error(`Teach this test what to send as {${name}} in ${path}`)
    return encodeURIComponent(ids[name])
  })
  const json = operation.requestBody?.content['application/json']
  // A body that requires no field may still require one of several.
  const sample = json && (json.schema.required ? sampleOf(json.schema) : (json.example ?? {}))
  const body = sample as Record<string, unknown> | undefined
  if (body?.session_id) body.session_id = ids.session_id
  if (body?.skill_id) body.skill_id = ids.skill_id
  if (body?.statement_ids) body.statement_ids = [ids.statement_id]
  if (body?.to_seq) body.to_seq = 1
  if (body?.fence) body.fence = Number(ids.fence ?? 1)
  // It takes this or another name of the same bytes.
  const isNeeded = (name: string) => name === 'sha256'
  const queries = operation.parameters?.filter((one) => one.in === 'query') ?? []
  const needed = queries.filter((one) => one.required || isNeeded(one.name))
  const query = Object.fromEntries(needed.map(({ name, example }) => [name, example!]))
  return client.request(method.toUpperCase(), real, { query, ...(body && { body }) })
}

const learn = ({ learning_space_id, session_id }: Ids) =>
  stranger.request('POST', `/api/v1/learning_spaces/${learning_space_id}/learn`, { body: { session_id } })

const lease = async ({ session_id }: Ids) => {
  const body = { owner: 'w', ttl_ms: 600_000 }
  const path = `/api/v1/session/${session_id}/lease`
  return String(expectOk(await stranger.request<{ fence: number }>('POST', path, { body })).fence)
}

/** All that a caller can tell an answer by: the request id, its own, and the time apart. */
function told({ status, text, headers }: Answer<unknown>) {
  const { 'x-request-id': _id, date: _date, ...rest } = headers
  return { status, text, headers: rest }
}

async function everythingOfTheOwner() {
  const { session_id, learning_space_id, identifier } = owners
  return [
    (await owner.getSession(session_id!)).text,
    (await ownersLog.timeline()).text,
    (await ownersLog.list({ with_events: true })).text,
    (await ownersLog.tokens()).text,
    (await owner.getLearningSpace(learning_space_id!)).text,
    (await owner.request('GET', `/api/v1/learning_spaces/${learning_space_id}/statements`)).text,
    (await owner.request('GET', `/api/v1/user/${identifier}/resources`)).text,
    (await owner.request('GET', '/api/v1/webhooks')).text,
    (await owner.request('GET', `/api/v1/agent_skills/${owners.skill_id}`)).text,
    (await owner.request('GET', `/api/v1/learning_spaces/${learning_space_id}/skills`)).text,
    (await owner.listSessions()).text,
  ]
}

describe('an operation with the ids of another project', () => {
  it('is known for every path parameter, and there are many', () => {
    expect(operations.length).toBeGreaterThanOrEqual(18)
    const names = operations.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!))
    expect([...new Set(names)].sort()).toEqual(Object.keys(owners).sort())
  })

  it.each(operations)(
    'answers as for ids that nobody has, and does nothing: $method $path',
    async (operation) => {
      const unknown = await call(stranger, operation, nobodys)
      const foreign = await call(stranger, operation, owners)
      expect(unknown.status, unknown.text).toBe(404)
      expect(told(foreign)).toEqual(told(unknown))
      expect(await everythingOfTheOwner()).toEqual(everything)
    },
  )

  it.each(operations.filter(({ path }) => path.split('{').length > 2))(
    'answers so too below a session of one’s own: $method $path',
    async (operation) => {
      const own = { ...nobodys, session_id: strangers.session_id! }
      const unknown = await call(stranger, operation, own)
      const foreign = await call(stranger, operation, { ...own, message_id: owners.message_id! })
      expect(unknown.status, unknown.text).toBe(404)
      expect(told(foreign)).toEqual(told(unknown))
      expect(await everythingOfTheOwner()).toEqual(everything)
    },
  )

  it('does not open a live tail', async () => {
    const headers = { Accept: 'text/event-stream' }
    const tail = (id: string) => stranger.request('GET', `/api/v1/session/${id}/timeline`, { headers })
    const unknown = await tail(nobodys.session_id!)
    expect(unknown.status, unknown.text).toBe(404)
    expect(told(await tail(owners.session_id!))).toEqual(told(unknown))
  })

  it('shows nothing in a list filtered by the other project’s user', async () => {
    for (const path of ['/api/v1/session', '/api/v1/learning_spaces']) {
      const [foreign, unknown] = await Promise.all(
        [owners, nobodys].map((ids) => stranger.request('GET', path, { query: { user: ids.identifier } })),
      )
      expect(told(foreign!)).toEqual(told(unknown!))
    }
    const users = await stranger.request('GET', '/api/v1/user/ls', { query: { limit: 200 } })
    expect(users.text).not.toContain(owners.identifier)
  })

  it('works in the own project, with what this file sends: no 404 above was for another reason', async () => {
    const newIds = async () => (await oneOfEach(service.node.url, stranger, strangersProject.token)).ids
    const read = await newIds()
    for (const operation of operations) {
      const ids = operation.method === 'get' ? read : await newIds()
      if (operation.path.endsWith('/sessions/{session_id}')) await learn(ids)
      if (operation.path.endsWith('/lease') && operation.method === 'put') ids.fence = await lease(ids)
      const answer = await call(stranger, operation, ids)
      expect(answer.status, `${operation.method} ${operation.path} ${answer.text}`).toBeLessThan(300)
      // A project may have 10 only.
      if (ids !== read) await stranger.request('DELETE', `/api/v1/webhooks/${ids.webhook_id}`)
    }
  })
})

describe('an operation of the operator', () => {
  const idsOf = (project_id: string, token_id: string = randomUUID()): Ids => ({ project_id, token_id })
  const tokensOf = async (project: Project) => {
    const path = `/admin/v1/projects/${project.id}/tokens`
    const { items } = expectOk(
      await service
        .adminClient()
        .request<{ items: Array<{ id: string; revoked_at: string | null }> }>('GET', path),
    )
    return items
  }

  it.each(ofTheOperator)('tells a tenant’s key nothing of any project: $method $path', async (operation) => {
    const unknown = await call(stranger, operation, idsOf(randomUUID()))
    expect(unknown.status, unknown.text).toBe(401)
    for (const { id } of [ownersProject, strangersProject])
      expect(told(await call(stranger, operation, idsOf(id)))).toEqual(told(unknown))
    expect(await everythingOfTheOwner()).toEqual(everything)
  })

  it.each(ofTheOperator.filter(({ path }) => path.includes('{token_id}')))(
    'finds no token of one project below another: $method $path',
    async (operation) => {
      const [token] = await tokensOf(ownersProject)
      const admin = service.adminClient()
      const unknown = await call(admin, operation, idsOf(strangersProject.id))
      expect(unknown.status, unknown.text).toBe(404)
      expect(told(await call(admin, operation, idsOf(strangersProject.id, token!.id)))).toEqual(told(unknown))
      expect(await tokensOf(ownersProject)).toEqual([token])
    },
  )
})

it('revokes no key of another project, and says what it says of one that nobody has', async () => {
  const path = `/admin/v1/projects/${strangersProject.id}/tokens`
  const body = { name: 'admin', scopes: ['admin'] }
  const made = await service.adminClient().request<{ token: string }>('POST', path, { body })
  const admin = service.rawClient(expectOk(made, 201).token)
  const { id } = expectOk(await owner.request<{ id: string }>('GET', '/api/v1/key'))
  const unknown = await admin.request('DELETE', `/api/v1/keys/${randomUUID()}`)
  expect(unknown.status, unknown.text).toBe(404)
  expect(told(await admin.request('DELETE', `/api/v1/keys/${id}`))).toEqual(told(unknown))
  expectOk(await owner.request('GET', '/api/v1/key'))
})

describe('the time that an operation with the ids of another project takes', () => {
  let proxy: DatabaseProxy
  let seen: HttpClient

  beforeAll(async () => {
    proxy = await proxyDatabase(service.databaseUrl)
    const node = await service.startNode({ DATABASE_URL: proxy.url })
    seen = service.rawClient(strangersProject.token, node)
  })
  afterAll(() => proxy.close())

  /** Bytes that one call sends to the database and has back from it. */
  async function workOf(operation: (typeof operations)[number], ids: Ids) {
    const { there, back } = proxy.passed
    expect((await call(seen, operation, ids)).status).toBe(404)
    return { there: proxy.passed.there - there, back: proxy.passed.back - back }
  }

  it.each(operations)(
    'tells nothing: the database is asked as much and answers as much: $method $path',
    async (operation) => {
      // Now and then something else speaks to the database as well, and a statement's first time is longer.
      await vi.waitFor(
        async () => {
          const unknown = await workOf(operation, nobodys)
          // On a cluster, appends go to workers, past the proxy.
          if (inject('testServer').mode === 'cloned')
            expect(Math.min(unknown.there, unknown.back)).toBeGreaterThan(0)
          const foreign = await workOf(operation, owners)
          expect(foreign).toEqual(unknown)
        },
        { timeout: 15_000, interval: 0 },
      )
    },
  )
})
