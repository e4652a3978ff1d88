import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type HttpClient, httpClient } from '../harness/http_client.ts'
import { type PgBouncer, reasonForNoPgBouncer, startPgBouncer } from '../harness/pgbouncer.ts'
import { createProject, expectOrderlyEnds, type Project } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'
import { walkPages } from '../harness/walk_pages.ts'

const reason = reasonForNoPgBouncer()
const nodes: AnnalsServer[] = []
const clients: HttpClient[] = []
let database: TestDatabase
let bouncer: PgBouncer | undefined
let project: Project
let apis: ApiClient[]

async function startNode(env: Record<string, string> = {}): Promise<ApiClient> {
  const node = await startServer({ DATABASE_URL: bouncer!.url, ANNALS_FEED_POLL_MS: '300', ...env })
  nodes.push(node)
  if (!project) {
    const admin = httpClient(node.url, ADMIN_TOKEN)
    clients.push(admin)
    project = await createProject(admin)
  }
  const client = apiClient(node.url, project.token)
  clients.push(client)
  return client
}

beforeAll(async () => {
  if (reason) return
  database = await createTestDatabase()
  bouncer = await startPgBouncer(database.url)
  apis = [await startNode(), await startNode()]
})
beforeEach((context) => {
  context.skip(reason !== undefined, reason)
})
afterAll(async () => {
  for (const client of clients) client.close()
  const ends = await Promise.all(nodes.map((node) => node.stop()))
  await bouncer?.stop()
  await database?.drop()
  expectOrderlyEnds(ends)
})

describe('through a PgBouncer in transaction mode', () => {
  it('a service starts, and says that there is a pooler', () => {
    expect(nodes[0]!.lines.join('\n')).toMatch(/^Data: {4}PostgreSQL at .*, through a pooler$/m)
  })

  it('many writers at two nodes leave logs without gaps', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => (await newSessionLog(apis[0]!)).id))
    await Promise.all(
      Array.from({ length: 24 }, async (_, writer) => {
        for (let n = 0; n < 15; n += 1) {
          const answer = await apis[writer % 2]!.appendEvent(ids[n % 3]!, {
            type: 'note',
            data: { writer, n },
          })
          expectOk(answer)
        }
      }),
    )
    for (const id of ids) {
      const events = await walkPages((cursor) => apis[1]!.listEvents(id, { limit: 50, cursor }))
      expect(events.map((event) => event.seq)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1))
    }
  })

  it('lists, filters, merges, copies and deletes', async () => {
    const api = apis[0]!
    const log = await newSessionLog(api, { user: 'ann', configs: { agent: 'a' } })
    await newSessionLog(api, { user: 'bob', configs: { agent: 'b' } })
    expectOk(await log.add({ role: 'user', content: 'hello' }), 201)
    expectOk(await log.batch([{ kind: 'event', type: 'x', data: {} }]), 201)
    const path = `/api/v1/session/${log.id}`
    expectOk(await api.request('PATCH', `${path}/configs`, { body: { configs: { b: 1 } } }))
    const query = { filter_by_configs: '{"b":1}' }
    expect(expectOk(await api.listSessions(query)).items.map(({ id }) => id)).toEqual([log.id])
    expect(expectOk(await api.listSessions({ user: 'ann' })).items).toHaveLength(1)
    expect(expectOk(await log.timeline()).items.map(({ kind }) => kind)).toEqual(['message', 'event'])
    expectOk(await log.copy())
    expectOk(await api.deleteSession(log.id))
    expectError(await api.getSession(log.id), 404, 'session_not_found')
    expectOk(await api.request('DELETE', '/api/v1/user/ann'))
  })

  it('tails show what another node stored, by looking, or at once with DATABASE_DIRECT_URL', async () => {
    const log = await newSessionLog(apis[0]!)
    const looking = await openTail(nodes[1]!.url, project.token, log.id, {})
    expectOk(await log.addEvent())
    await looking.received(1)
    looking.close()

    const direct = { DATABASE_DIRECT_URL: database.url, ANNALS_FEED_POLL_MS: '60000' }
    const [writer] = [await startNode(direct), await startNode(direct)]
    const listening = await openTail(nodes.at(-1)!.url, project.token, log.id, {})
    await listening.received(1)
    for (let n = 2; n <= 4; n += 1) {
      expectOk(await writer.appendEvent(log.id, { type: 'note', data: { n } }))
      await listening.received(n)
    }
    listening.close()
  })

  it('commands migrate, export and import', async () => {
    const env = { DATABASE_URL: bouncer!.url }
    const directory = await mkdtemp(join(tmpdir(), 'annals-pgbouncer-export-'))
    const file = join(directory, 'export.ndjson')
    try {
      expect(await runCommand(['migrate'], env)).toMatchObject({ code: 0 })
      expect(await runCommand(['export', '--project', project.name, '--output', file], env)).toMatchObject({
        code: 0,
      })
      const target = await createProject(clients[0]!)
      const imported = await runCommand(['import', file, '--project', target.name], env)
      expect(imported).toMatchObject({ code: 0 })
      const [rows] = await queryRows(
        database.url,
        `SELECT (SELECT count(*) FROM entries WHERE project_id = $1) AS exported,
           (SELECT count(*) FROM entries WHERE project_id = $2) AS imported`,
        [project.id, target.id],
      )
      expect(rows!.imported).toBe(rows!.exported)
      expect(Number(rows!.imported)).toBeGreaterThan(0)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  it('leaves the connections that it shares with others as they were', async () => {
    const settings = `SELECT current_setting('synchronous_commit') AS synchronous_commit,
      current_setting('enable_seqscan') AS enable_seqscan, pg_sleep(0.05)`
    const shared = await Promise.all(Array.from({ length: 12 }, () => queryRows(bouncer!.url, settings)))
    const { rows } = await withConnection(database.url, (connection) => connection.query(settings))
    expect(rows).toMatchObject([{ synchronous_commit: 'on' }])
    for (const found of shared) expect(found).toEqual(rows)
  })
})
