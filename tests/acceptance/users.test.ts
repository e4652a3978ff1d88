import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ApiClient, apiClient, type Page } from '../harness/api_client.ts'
import { putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk, TIMESTAMP, UUID } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { mixedEntries, newSessionLog, sessionLog } from '../harness/session_log.ts'
import { withConnection } from '../harness/sql.ts'
import { tablesThatMention } from '../harness/tables_that_mention.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { walkPages } from '../harness/walk_pages.ts'

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

/** How often a user is erased while others make what is the user's. */
const ERASURES = IS_THOROUGH ? 300 : 60

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
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

describe('the list of users', () => {
  it('shows each user of the project once, in both directions and pages of any size', async () => {
    const client = await service.newClient()
    const names = Array.from({ length: 25 }, (_, n) => `user-${n}`)
    for (const user of names) expectOk(await client.createSession({ user }), 201)
    expectOk(await client.createSession({ user: names[3] }), 201)
    for (const limit of [1, 7, 200]) {
      const up = await walkPages((cursor) => usersOf(client, { limit, cursor }))
      const down = await walkPages((cursor) => usersOf(client, { limit, cursor, time_desc: true }))
      expect(up.map((user) => user.identifier)).toEqual(names)
      expect(down).toEqual([...up].reverse())
    }
    const page = expectOk(await usersOf(client, { limit: 20 }))
    expect([page.items.length, page.has_more]).toEqual([20, true])
    const [session] = expectOk(await client.listSessions({ user: names[0]! })).items
    expect(page.items[0]).toEqual({
      id: session!.user_id,
      project_id: session!.project_id,
      identifier: names[0],
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: expect.stringMatching(TIMESTAMP),
    })
    const { next_cursor: cursor } = page
    expectError(await usersOf(client, { cursor, time_desc: true }), 400, 'invalid_cursor')
    expectError(await usersOf(client, { limit: 201 }), 400, 'invalid_request', 'limit')
    expectError(await usersOf(client, { surprise: 1 }), 400, 'invalid_request', 'surprise')
  })

  it.each([200, 402, 403])('shows all of %i users as one page if no limit is given', async (count) => {
    const own = await service.newProject()
    const client = await service.newClient({ token: own.token })
    await withConnection(service.databaseUrl, (connection) =>
      connection.query(
        `INSERT INTO users (project_id, id, identifier, created_at, updated_at)
         SELECT $1, gen_random_uuid(), 'user-' || n, now() + (n / 3) * interval '1 s', now() FROM generate_series(1, $2) n`,
        [own.id, count],
      ),
    )
    const walked = await walkPages((cursor) => usersOf(client, { limit: 100, cursor }))
    const all = expectOk(await usersOf(client))
    expect(all).toEqual({ items: walked, has_more: false, next_cursor: '' })
    expect(all.items).toHaveLength(count)
    const { next_cursor: cursor } = expectOk(await usersOf(client, { limit: 150 }))
    expect(expectOk(await usersOf(client, { cursor })).items).toEqual(walked.slice(150))
  })

  it('has one user after 60 simultaneous first uses by sessions and spaces at two nodes', async () => {
    const own = await service.newProject()
    const node = service.secondNode
    const clients = await Promise.all(
      [service.node, node].map((at) => service.newClient({ token: own.token, node: at })),
    )
    const uses = Array.from({ length: 60 }, (_, n) => {
      const client = clients[n % 2]!
      return n % 3 ? client.createSession({ user: 'first' }) : client.createLearningSpace({ user: 'first' })
    })
    const ids = (await Promise.all(uses)).map(
      (answer) => expectOk<{ user_id: string | null }>(answer as never, 201).user_id,
    )
    expect(new Set(ids).size).toBe(1)
    expect(ids[0]).toMatch(UUID)
    expect(expectOk(await usersOf(clients[0]!)).items.map((user) => user.id)).toEqual([ids[0]])
    expect(expectOk(await countsOf('first', clients[0]))).toEqual(counts(40, 20))
  })
})

describe('the resources of a user', () => {
  it('are counted as they come and go, and those of an unknown user are 404', async () => {
    expectError(await countsOf('ada'), 404, 'user_not_found')
    const { id } = expectOk(await api.createSession({ user: 'ada' }), 201)
    expectOk(await api.createLearningSpace({ user: 'ada' }), 201)
    expect(expectOk(await countsOf('ada'))).toEqual(counts(1, 1))
    expectOk(await api.request('POST', `/api/v1/session/${id}/copy`))
    expect(expectOk(await countsOf('ada'))).toEqual(counts(2, 1))
    expectOk(await api.deleteSession(id))
    expect(expectOk(await countsOf('ada'))).toEqual(counts(1, 1))
    expectError(await countsOf('ada', await service.newClient()), 404, 'user_not_found')
  })
})

describe('erasing a user', () => {
  it('answers with what it removed and leaves no trace in any table', async () => {
    const identifier = `erased-${randomUUID()}`
    const secret = `secret-${randomUUID()}`
    const headers = (key: string) => ({ headers: { 'Idempotency-Key': `${key} ${secret}` } })
    const created = await api.createSession({ user: identifier, configs: { secret } }, headers('create'))
    const session = expectOk(created, 201)
    const log = sessionLog(api, session.id)
    const { items } = expectOk(await log.batch(mixedEntries(30, secret), headers('batch')), 201)
    const message = expectOk(
      await log.add({ role: 'user', content: secret }, { meta: { secret } }, headers('message')),
      201,
    )
    expectOk(await log.patchMeta(message.id, { patched: secret }))
    expectOk(await api.appendEvent(log.id, { type: 'note', data: { secret } }, headers('event')))
    const bytes = Buffer.from(`${secret} `.repeat(20_000))
    expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
    const file = { annals_blob: sha256Of(bytes), media_type: 'text/plain' }
    expectOk(await api.appendEvent(log.id, { type: 'file', data: { file }, key: `state of ${secret}` }))
    const copy = expectOk(await log.copy(headers('copy'))).new_session_id
    const space = expectOk(
      await api.createLearningSpace({ user: identifier, meta: { secret } }, headers('space')),
      201,
    )
    const deleted = await newSessionLog(api, { user: identifier })
    expectOk(await deleted.add({ role: 'user', content: secret }, {}, headers('deleted')), 201)
    expectOk(await api.deleteSession(deleted.id))
    const bystander = await newSessionLog(api, { user: `${identifier}x` })
    expectOk(await bystander.addEvent())

    const needles = [
      identifier,
      session.user_id!,
      log.id,
      copy,
      deleted.id,
      space.id,
      message.id,
      items[0]!.id,
      items[1]!.id,
      secret,
      sha256Of(bytes),
    ]
    expect(await tablesThatMention(service.databaseUrl, project.id, needles)).toEqual(
      expect.arrayContaining(['blob_chunks', 'blob_references', 'entries']),
    )
    expect(expectOk(await erase(identifier))).toMatchObject({
      deleted: { sessions: 2, entries: 66, learning_spaces: 1, blobs: 1 },
    })
    expect(expectOk(await bystander.timeline()).items).toHaveLength(1)
    expectOk(await erase(`${identifier}x`))
    expect(await tablesThatMention(service.databaseUrl, project.id, [...needles, bystander.id])).toEqual([])

    for (const id of [log.id, copy]) expectError(await api.getSession(id), 404, 'session_not_found')
    expectError(await api.getLearningSpace(space.id), 404, 'learning_space_not_found')
    expect(expectOk(await api.listSessions({ user: identifier })).items).toEqual([])
    expectError(await erase(identifier), 404, 'user_not_found')
    expectError(await countsOf(identifier), 404, 'user_not_found')
    const anew = expectOk(await api.createSession({ user: identifier }), 201)
    expect(anew.user_id).not.toBe(session.user_id)
  })

  it('of another project or that nobody has is 404 and touches nothing', async () => {
    expectOk(await api.createSession({ user: 'eve' }), 201)
    const stranger = await service.newClient()
    const [foreign, unknown] = [await erase('eve', stranger), await erase('nobody', stranger)]
    expectError(foreign, 404, 'user_not_found')
    expect(foreign.text).toBe(unknown.text)
    expect(expectOk(await countsOf('eve'))).toEqual(counts(1, 0))
  })

  it('while others make sessions for the user returns no 500, and no session without its user', async () => {
    const clients = Array.from({ length: 6 }, () => apiClient(service.node.url, project.token))
    let enough = false
    const making = clients.map(async (client) => {
      const statuses: number[] = []
      while (!enough) {
        const answer = await client.createSession({ user: 'busy' })
        statuses.push(answer.status)
        if (answer.status === 201) {
          statuses.push((await client.appendEvent(answer.json.data.id, { type: 'x', data: {} })).status)
        }
        statuses.push((await client.createLearningSpace({ user: 'busy' })).status)
      }
      return statuses
    })
    const erasures: number[] = []
    for (let n = 0; n < ERASURES; n += 1) erasures.push((await erase('busy')).status)
    enough = true
    const statuses = (await Promise.all(making)).flat()
    for (const client of clients) client.close()
    expect(statuses.filter((status) => ![200, 201, 404, 503].includes(status))).toEqual([])
    expect(erasures.filter((status) => ![200, 404, 503].includes(status))).toEqual([])
    expect(erasures).toContain(200)
    const last = expectOk(await api.createSession({ user: 'busy' }), 201)
    const sessions = await walkPages((cursor) => api.listSessions({ user: 'busy', limit: 200, cursor }))
    expect(new Set(sessions.map((session) => session.user_id))).toEqual(new Set([last.user_id]))
    const orphans = await walkPages((cursor) => api.listSessions({ limit: 200, cursor }))
    const users = await walkPages((cursor) => usersOf(api, { limit: 200, cursor }))
    const known = users.map((user) => user.id)
    expect(orphans.filter(({ user_id }) => user_id !== null && !known.includes(user_id))).toEqual([])
  }, 120_000)
})
