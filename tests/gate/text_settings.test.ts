import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { databaseNameOf } from '../harness/database_url.ts'
import { expectOk } from '../harness/expectations.ts'
import { type PgBouncer, reasonForNoPgBouncer, startPgBouncer } from '../harness/pgbouncer.ts'
import { createProject, expectOrderlyEnds, type Project } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

/**
 * What changes texts, each as far as it goes from what we would like. But for ISO, PostgreSQL writes the zone by its name,
 * and reads this one back as another: the name of what is three hours west says five hours east.
 */
const HOSTILE = {
  datestyle: "'German'",
  intervalstyle: "'sql_standard'",
  timezone: "'<+05>+3'",
  extra_float_digits: '-15',
  bytea_output: "'escape'",
  standard_conforming_strings: 'off',
  lc_time: "'C'",
}
/** More than a copy writes at once. */
const ENTRIES = 2_100
const AT_ONCE = 300

describe.skipIf(reasonForNoOwnDatabase()).each([
  { way: 'directly', throughPooler: false },
  { way: 'through a pooler', throughPooler: true },
])('a database whose settings write times and bytes in other ways, $way', ({ throughPooler }) => {
  let database: TestDatabase
  let bouncer: PgBouncer | undefined
  let node: AnnalsServer
  let project: Project
  let api: ApiClient
  let databaseUrl: string
  const reason = throughPooler ? reasonForNoPgBouncer() : undefined

  beforeAll(async () => {
    if (reason) return
    database = await createTestDatabase()
    for (const [name, value] of Object.entries(HOSTILE))
      await execute(database.url, `ALTER DATABASE ${databaseNameOf(database.url)} SET ${name} = ${value}`)
    if (throughPooler) bouncer = await startPgBouncer(database.url)
    databaseUrl = bouncer?.url ?? database.url
    node = await startServer({ DATABASE_URL: databaseUrl })
    const admin = apiClient(node.url, ADMIN_TOKEN)
    project = await createProject(admin)
    admin.close()
    api = apiClient(node.url, project.token)
  })
  afterAll(async () => {
    api?.close()
    const ends = node ? [await node.stop()] : []
    await bouncer?.stop()
    await database?.drop()
    expectOrderlyEnds(ends)
  })

  it.skipIf(reason)('orders by last activity, copies what is long, and verifies', async () => {
    const log = await newSessionLog(api, { configs: { agent: 'a' } })
    for (let from = 0; from < ENTRIES; from += AT_ONCE) {
      const entries = Array.from({ length: AT_ONCE }, () => ({ kind: 'event', type: 'note', data: {} }))
      expectOk(await log.batch(entries), 201)
    }
    const copy = expectOk(await log.copy())
    await newSessionLog(api)
    await vi.waitFor(
      async () => {
        const { items } = expectOk(await api.listSessions({ order_by: 'last_activity' }))
        expect(items.map(({ id }) => id)).toContain(copy.new_session_id)
        expect(items).toHaveLength(3)
      },
      { timeout: 60_000 },
    )
    const bytes = Buffer.from([0, 1, 92, 39, 200, 255])
    const url = `${node.url}/api/v1/blobs/${createHash('sha256').update(bytes).digest('hex')}`
    const authorization = { Authorization: `Bearer ${project.token}` }
    const headers = { ...authorization, 'Content-Type': 'application/octet-stream' }
    expect((await fetch(url, { method: 'PUT', headers, body: bytes })).ok).toBe(true)
    expect(Buffer.from(await (await fetch(url, { headers: authorization })).arrayBuffer())).toEqual(bytes)
    const verified = await runAnnals(['verify'], { DATABASE_URL: databaseUrl })
    expect(verified).toMatchObject({ code: 0 })
  })
})
