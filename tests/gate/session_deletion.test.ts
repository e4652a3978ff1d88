import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { openTail, type Tail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows, withConnection } from '../harness/sql.ts'

/** More than is deleted at once. */
const ENTRIES = 5_000

/** Longer than a busy machine takes for what a test does while it holds a row that a statement waits for. */
const ANNALS_STATEMENT_MS_MAX = '300000'

const service = useService({ ANNALS_RETENTION_MS: '200', ANNALS_STATEMENT_MS_MAX })
const tails: Tail[] = []
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})
afterEach(() => {
  for (const tail of tails.splice(0)) tail.close()
})

async function newLongSession(body: unknown = {}): Promise<SessionLog> {
  const log = await newSessionLog(api, body)
  for (let from = 0; from < ENTRIES; from += 1_000) {
    const entries = Array.from({ length: 1_000 }, (_, index) => ({
      kind: 'event',
      type: 'note',
      data: { index: from + index },
    }))
    const headers = { 'Idempotency-Key': randomUUID() }
    expectOk(await log.batch(entries, { headers }), 201)
  }
  return log
}

/** Rows of every table that belong to a session. */
async function rowsOf(session_id: string): Promise<Record<string, number>> {
  const [row] = await queryRows<Record<string, string>>(
    service.databaseUrl,
    `SELECT (SELECT count(*) FROM sessions WHERE project_id = $1 AND id = $2) AS sessions,
       (SELECT count(*) FROM session_heads WHERE project_id = $1 AND session_id = $2) AS session_heads,
       (SELECT count(*) FROM entries WHERE project_id = $1 AND session_id = $2) AS entries,
       (SELECT count(*) FROM idempotency_keys WHERE project_id = $1 AND owner_id = $2) AS idempotency_keys,
       (SELECT count(*) FROM erased_sessions WHERE project_id = $1 AND session_id = $2) AS erased_sessions`,
    [project.id, session_id],
  )
  return Object.fromEntries(Object.entries(row!).map(([table, count]) => [table, Number(count)]))
}
const NOTHING = { sessions: 0, session_heads: 0, entries: 0, idempotency_keys: 0, erased_sessions: 0 }

/** Holds one entry's row while `action` runs: who deletes the entry waits. */
async function whileEntryIsHeld<T>(session_id: string, seq: number, action: () => Promise<T>): Promise<T> {
  return withConnection(service.databaseUrl, async (connection) => {
    await connection.query('BEGIN')
    await connection.query(
      'SELECT seq FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = $3 FOR UPDATE',
      [project.id, session_id, seq],
    )
    return action().finally(() => connection.query('ROLLBACK'))
  })
}

describe('a session with more entries than are deleted at once', () => {
  it('leaves nothing in any table, and its id can be used again', async () => {
    const use_uuid = randomUUID()
    const log = await newLongSession({ use_uuid })
    expectOk(await api.deleteSession(log.id))
    expect(await rowsOf(log.id)).toEqual(NOTHING)
    expectError(await api.deleteSession(log.id), 404, 'session_not_found')
    expectOk(await api.createSession({ use_uuid }), 201)
    expect(expectOk(await log.addEvent()).seq).toBe(1)
  })

  it('is gone for everybody before its entries are, and its id is free only after them', async () => {
    const use_uuid = randomUUID()
    const log = await newLongSession({ use_uuid, user: 'long' })
    const tail = await openTail(service.node.url, project.token, log.id, { query: { after_seq: ENTRIES } })
    tails.push(tail)
    const deletion = await whileEntryIsHeld(log.id, 2_500, async () => {
      const under_way = api.deleteSession(log.id)
      await vi.waitFor(async () => expectError(await api.getSession(log.id), 404, 'session_not_found'), {
        timeout: 15_000,
      })
      expectError(await log.addEvent(), 404, 'session_not_found')
      expectError(await log.timeline(), 404, 'session_not_found')
      expectError(await log.copy(), 404, 'session_not_found')
      expect(expectOk(await api.listSessions({ user: 'long' })).items).toEqual([])
      await tail.whenEnded()
      const anew = await api.createSession({ use_uuid })
      expectError(anew, 503, 'unavailable')
      expect(anew.headers['retry-after']).toBeDefined()
      expect(await rowsOf(log.id)).toMatchObject({ sessions: 0, session_heads: 0, erased_sessions: 1 })
      const verified = await runCommand(['verify', '--project', project.name], {
        DATABASE_URL: service.databaseUrl,
      })
      expect(verified.code, verified.stdout + verified.stderr).toBe(0)
      return { under_way }
    })
    expectOk(await deletion.under_way)
    expect(await rowsOf(log.id)).toEqual(NOTHING)
  })

  it("is nobody's work, and its requests are gone, before its entries are", async () => {
    const log = await newLongSession()
    const call = { mode: 'queue', kind: 'event', type: 'go', data: {} }
    expectOk(await api.request('POST', `/api/v1/session/${log.id}/inbox`, { body: call }), 201)
    const asked = { body: { kind: 'question', text: 'Go on?' } }
    const opened = await api.request<{ id: string }>('POST', `/api/v1/session/${log.id}/requests`, asked)
    const { id } = expectOk(opened, 201)
    const deletion = await whileEntryIsHeld(log.id, 2_500, async () => {
      const under_way = api.deleteSession(log.id)
      await vi.waitFor(async () => expect((await rowsOf(log.id)).erased_sessions).toBe(1), {
        timeout: 15_000,
      })
      const listed = await api.request<{ items: object[] }>('GET', '/api/v1/requests')
      expect(expectOk(listed).items).toEqual([])
      expectError(await api.request('GET', `/api/v1/requests/${id}`), 404, 'request_not_found')
      const answer = { body: { decision: 'answer', answer: 'yes' } }
      expectError(
        await api.request('POST', `/api/v1/requests/${id}/resolve`, answer),
        404,
        'request_not_found',
      )
      // Work that was skipped is asked for again at once.
      const named = "SELECT proname AS name FROM pg_proc WHERE proname LIKE 'claim\\_work\\_%'"
      const [claim] = await queryRows<{ name: string }>(service.databaseUrl, named)
      const claims = `SELECT ${claim!.name}($1, 'a', 1000, 1, NULL) AS answer`
      const [claimed] = await queryRows<{ answer: string }>(service.databaseUrl, claims, [project.id])
      expect(JSON.parse(claimed!.answer.split('\n')[0]!)).toMatchObject({ sessions: [], skipped: 0 })
      return { under_way }
    })
    expectOk(await deletion.under_way)
  })

  it('is deleted to the end by another node when the one that did it is killed', async () => {
    const log = await newLongSession()
    const doomed = await service.startNode()
    const client = await service.newClient({ token: project.token, node: doomed })
    await whileEntryIsHeld(log.id, 2_500, async () => {
      const cut_off = client.deleteSession(log.id).catch(() => 'cut off')
      await vi.waitFor(async () => expect((await rowsOf(log.id)).erased_sessions).toBe(1), {
        timeout: 15_000,
      })
      await doomed.kill()
      expect(await cut_off).toBe('cut off')
      expect((await rowsOf(log.id)).entries).toBeGreaterThan(0)
    })
    await vi.waitFor(async () => expect(await rowsOf(log.id)).toEqual(NOTHING), { timeout: 20_000 })
  })

  it('is deleted with the sessions below it by another node when the one that did it is killed', async () => {
    const parent = await newSessionLog(api)
    const child = await newLongSession({ parent: parent.id })
    // One more than are deleted at once.
    await Promise.all(Array.from({ length: 101 }, () => newSessionLog(api, { parent: child.id })))
    const grandchildren = async () => {
      const found = 'SELECT id FROM sessions WHERE project_id = $1 AND parent_id = $2'
      return (await queryRows(service.databaseUrl, found, [project.id, child.id])).length
    }
    const doomed = await service.startNode()
    const client = await service.newClient({ token: project.token, node: doomed })
    await whileEntryIsHeld(child.id, 2_500, async () => {
      // Housekeeping at another node may take the child first: then nothing is left for this one, and it answers.
      const ended = client.deleteSession(parent.id).catch(() => 'cut off')
      await vi.waitFor(async () => expect((await rowsOf(child.id)).erased_sessions).toBe(1), {
        timeout: 15_000,
      })
      await doomed.kill()
      await ended
      // Another node may have finished the parent itself by now.
      expect((await rowsOf(parent.id)).sessions).toBe(0)
      expect(await grandchildren()).toBeGreaterThan(0)
    })
    for (const { id } of [child, parent])
      await vi.waitFor(async () => expect(await rowsOf(id)).toEqual(NOTHING), { timeout: 15_000 })
    expect(await grandchildren()).toBe(0)
  })

  it('goes with its user, whose other sessions go as well, all of them counted', async () => {
    await newLongSession({ user: 'ann' })
    await newSessionLog(api, { user: 'ann' })
    const answer = await api.request<{ deleted: unknown }>('DELETE', '/api/v1/user/ann')
    expect(expectOk(answer).deleted).toMatchObject({ sessions: 2, entries: ENTRIES, learning_spaces: 0 })
  })

  it('goes with its project', async () => {
    const doomed = await service.newProject()
    const client = await service.newClient({ token: doomed.token })
    const log = await newSessionLog(client)
    const entries = Array.from({ length: 1_000 }, () => ({ kind: 'event', type: 'note', data: {} }))
    for (let n = 0; n < 3; n += 1) expectOk(await log.batch(entries), 201)
    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${doomed.id}`))
    for (const table of ['sessions', 'session_heads', 'entries', 'idempotency_keys', 'erased_sessions']) {
      const rows = await queryRows(service.databaseUrl, `SELECT 1 FROM ${table} WHERE project_id = $1`, [
        doomed.id,
      ])
      expect(rows, table).toEqual([])
    }
  })
})
