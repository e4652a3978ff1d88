import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { httpClient } from '../harness/http_client.ts'
import { createProject } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { createEmptyDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

/** A database that an early version wrote, and what that version answered of it, a line each. */
const fixture = (name: string) =>
  readFileSync(new URL(`../fixtures/upgrade/${name}`, import.meta.url), 'utf8')
const ANSWERS = fixture('schema_7_answers.ndjson')
  .trim()
  .split('\n')
  .map(
    (line) =>
      JSON.parse(line) as {
        list: string
        item?: Record<string, unknown>
        session_id?: string
        text?: string
      },
  )
const OLD_APPEND = fixture('schema_7_append.sql')
const KEY = 'sk-annals-old-0123456789abcdef0123456789abcdef'
const SESSION = '0193aaaa-0000-7000-8000-000000000000'

describe.skipIf(reasonForNoOwnDatabase() !== undefined)('a database of schema version 7', () => {
  let database: TestDatabase
  let node: AnnalsServer
  let api: ApiClient
  beforeAll(async () => {
    database = await createEmptyDatabase()
    await execute(database.url, fixture('schema_7.sql'))
    // Keys are kept for a day.
    await execute(database.url, 'UPDATE idempotency_keys SET created_at = now()')
    node = await startServer({ DATABASE_URL: database.url, ANNALS_API_KEY: KEY })
    api = apiClient(node.url, KEY)
  })
  afterAll(async () => {
    api?.close()
    await node?.stop()
    await database?.drop()
  })

  const items = async (path: string) =>
    expectOk(await api.request<{ items: unknown[] }>('GET', `/api/v1${path}`, { query: { limit: 200 } }))
      .items
  const verified = async () => {
    const { code, stdout } = await runCommand(['verify'], { DATABASE_URL: database.url })
    expect([code, stdout]).toEqual([0, expect.stringContaining('nothing is wrong')])
  }

  it('is migrated and sound, and every answer is what the old version gave', async () => {
    await verified()
    for (const [list, path] of [
      ['sessions', '/session'],
      ['users', '/user/ls'],
      ['spaces', '/learning_spaces'],
    ] as const) {
      const before = ANSWERS.filter((answer) => answer.list === list).map(({ item }) => item)
      expect(before.length).toBeGreaterThan(0)
      expect(await items(path)).toMatchObject(before as object[])
    }
    const timelines = ANSWERS.filter(({ list }) => list === 'timeline')
    expect(timelines).toHaveLength(5)
    for (const { session_id, text } of timelines) {
      const { items: before } = (JSON.parse(text!) as { data: { items: object[] } }).data
      expect(before.length).toBeGreaterThan(5)
      expect(await items(`/session/${session_id}/timeline`)).toMatchObject(before)
    }
    const answer = await api.request('GET', `/api/v1/session/${SESSION}/timeline`, { query: { limit: 200 } })
    expect(answer.text).toMatch(/"reward": ?1\.50/)
    expect(answer.text).toContain('12345678901234567890')
  })

  it('knows the idempotency keys of before', async () => {
    const again = await api.request('POST', `/api/v1/session/${SESSION}/events`, {
      rawBody: '{"type":"outcome","data":{"reward":1.50,"big":12345678901234567890}}',
      headers: { 'Idempotency-Key': 'outcome-0' },
    })
    expectOk(again)
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  it('takes appends of nodes of both versions at once during a rolling upgrade, and loses none', async () => {
    const [{ project_id, last_seq }] = (await queryRows<{ project_id: string; last_seq: string }>(
      database.url,
      'SELECT project_id, last_seq FROM session_heads WHERE session_id = $1',
      [SESSION],
    )) as [{ project_id: string; last_seq: string }]
    const EACH = 25
    const old = withConnection(database.url, async (connection) => {
      for (let n = 0; n < EACH; n += 1) {
        const data = JSON.stringify([{ by: 'old', n }])
        const { rows } = await connection.query(OLD_APPEND, [
          project_id,
          [SESSION],
          [1],
          [1],
          [1],
          [randomUUID()],
          [20],
          ['mixed'],
          data,
        ])
        expect(rows).toHaveLength(1)
      }
    })
    const added = async () => {
      for (let n = 0; n < EACH; n += 1)
        expectOk(
          await api.request('POST', `/api/v1/session/${SESSION}/events`, {
            body: { type: 'mixed', data: { by: 'new', n } },
          }),
        )
    }
    await Promise.all([old, added()])
    const timeline = (await items(`/session/${SESSION}/timeline`)) as Array<{
      seq: number
      type?: string
      data: { by: string; n: number }
    }>
    expect(timeline.map(({ seq }) => seq)).toEqual(
      Array.from({ length: Number(last_seq) + 2 * EACH }, (_, index) => index + 1),
    )
    for (const by of ['old', 'new'])
      expect(
        timeline.filter(({ type, data }) => type === 'mixed' && data.by === by).map(({ data }) => data.n),
      ).toEqual(Array.from({ length: EACH }, (_, index) => index))
    const usage = expectOk(await api.request<{ entries: { used: number } }>('GET', '/api/v1/usage'))
    const [counted] = await queryRows<{ entries: string }>(
      database.url,
      'SELECT count(*) AS entries FROM entries WHERE project_id = $1',
      [project_id],
    )
    expect(usage.entries.used).toBe(Number(counted!.entries))
    await verified()
  })

  it('answers by name, as the older node of the next upgrade, where a newer one stored what it does not know', async () => {
    const admin = httpClient(node.url, ADMIN_TOKEN)
    const project = await createProject(admin)
    const client = apiClient(node.url, project.token)
    try {
      const log = await newSessionLog(client)
      expectOk(await log.add({ role: 'user', content: 'of the future' }), 201)
      expectOk(await log.addEvent())
      await execute(
        database.url,
        "UPDATE entries SET format = 'next' WHERE project_id = $1 AND kind = 'message'",
        [project.id],
      )
      for (const path of ['messages', 'context', 'messages?format=anthropic'])
        expectError(
          await client.request('GET', `/api/v1/session/${log.id}/${path}`),
          503,
          'unavailable',
          'next',
        )
      const [message, event] = expectOk(await log.timeline()).items
      expect(message).toMatchObject({ format: 'next', blob: { content: 'of the future' } })
      expect(event).toMatchObject({ kind: 'event', seq: 2 })

      await execute(database.url, 'CREATE TABLE next_rows (project_id uuid REFERENCES projects (id))')
      await execute(database.url, 'INSERT INTO next_rows VALUES ($1)', [project.id])
      const erase = () => admin.request('DELETE', `/admin/v1/projects/${project.id}`)
      expectError(await erase(), 503, 'unavailable', 'newest version')
      await execute(database.url, 'DROP TABLE next_rows')
      expectOk(await erase())
    } finally {
      client.close()
      admin.close()
    }
  })
})

describe.skipIf(reasonForNoOwnDatabase() !== undefined)('a database of schema version 23', () => {
  it('is migrated and sound, and what was forked, attached, learnt, indexed and watched is as it was', async () => {
    const database = await createEmptyDatabase()
    try {
      await execute(database.url, fixture('schema_23.sql'))
      const node = await startServer({ DATABASE_URL: database.url, ANNALS_API_KEY: KEY })
      const api = apiClient(node.url, KEY)
      try {
        for (const line of fixture('schema_23_answers.ndjson').trim().split('\n')) {
          const { path, data } = JSON.parse(line) as { path: string; data: object }
          // The search index is built anew.
          await vi.waitFor(
            async () =>
              expect(expectOk(await api.request('GET', `/api/v1${path}`)), path).toMatchObject(data),
            25_000,
          )
        }
        const { code, stdout } = await runCommand(['verify'], { DATABASE_URL: database.url })
        expect([code, stdout]).toEqual([0, expect.stringContaining('nothing is wrong')])
      } finally {
        api.close()
        await node.stop()
      }
    } finally {
      await database.drop()
    }
  })
})
