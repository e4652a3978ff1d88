import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { describedOperations, sampleOf } from '../harness/described_operations.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { type Project, useService } from '../harness/service.ts'
import { mixedEntries, newSessionLog, type SessionLog } from '../harness/session_log.ts'

const operations = describedOperations.filter(({ path }) => path.startsWith('/api/v1/') && path.includes('{'))

type Ids = Record<string, string>
const service = useService()
let owner: ApiClient
let stranger: ApiClient
let strangersProject: Project
let ownersLog: SessionLog
/** What the owner has, what the stranger has, and what nobody has, by the name of the path parameter. */
let owners: Ids
let strangers: Ids
let nobodys: Ids

async function resourcesOf(client: ApiClient): Promise<{ ids: Ids; log: SessionLog }> {
  const identifier = `user-${randomUUID()}`
  const log = await newSessionLog(client, { user: identifier, configs: { secret: 1 } })
  const { items } = expectOk(await log.batch(mixedEntries(4)), 201)
  const space = expectOk(await client.createLearningSpace({ user: identifier, meta: { secret: 1 } }), 201)
  const message_id = items[0]!.id
  return { ids: { session_id: log.id, message_id, learning_space_id: space.id, identifier }, log }
}

beforeAll(async () => {
  owner = await service.newClient()
  strangersProject = await service.newProject()
  stranger = await service.newClient({ token: strangersProject.token })
  ;({ ids: owners, log: ownersLog } = await resourcesOf(owner))
  ;({ ids: strangers } = await resourcesOf(stranger))
  nobodys = Object.fromEntries(Object.keys(owners).map((name) => [name, randomUUID()]))
})

function call(client: ApiClient, { path, method, operation }: (typeof operations)[number], ids: Ids) {
  const real = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    if (ids[name] === undefined) throw new Error(`Teach this test what to send as {${name}} in ${path}`)
    return encodeURIComponent(ids[name])
  })
  const schema = operation.requestBody?.content['application/json']?.schema
  return client.request(method.toUpperCase(), real, schema ? { body: sampleOf(schema) } : {})
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
    (await owner.request('GET', `/api/v1/user/${identifier}/resources`)).text,
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
      const before = await everythingOfTheOwner()
      const unknown = await call(stranger, operation, nobodys)
      const foreign = await call(stranger, operation, owners)
      expect(unknown.status, unknown.text).toBe(404)
      expect(told(foreign)).toEqual(told(unknown))
      expect(await everythingOfTheOwner()).toEqual(before)
    },
  )

  it.each(operations.filter(({ path }) => path.split('{').length > 2))(
    'answers so too below a session of one’s own: $method $path',
    async (operation) => {
      const before = await everythingOfTheOwner()
      const own = { ...nobodys, session_id: strangers.session_id! }
      const unknown = await call(stranger, operation, own)
      const foreign = await call(stranger, operation, { ...own, message_id: owners.message_id! })
      expect(unknown.status, unknown.text).toBe(404)
      expect(told(foreign)).toEqual(told(unknown))
      expect(await everythingOfTheOwner()).toEqual(before)
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
    for (const operation of operations) {
      const { ids } = await resourcesOf(stranger)
      const answer = await call(stranger, operation, ids)
      expect(answer.status, `${operation.method} ${operation.path} ${answer.text}`).toBeLessThan(300)
    }
  })
})
