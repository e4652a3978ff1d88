import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { placesOf, switchSearch } from '../harness/search.ts'
import { type Project, useService } from '../harness/service.ts'
import { mixedEntries, newSessionLog } from '../harness/session_log.ts'
import { insertSessionRows } from '../harness/session_rows.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useService({ ANNALS_RETENTION_MS: '200' })
const annals = useTransfers(service)
let project: Project
let api: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const update = (id: string, body: unknown, client = api) =>
  client.request<Session & { expires_in_s?: number }>('PATCH', `/api/v1/session/${id}`, { body })
const statusesOf = (ids: string[]) => Promise.all(ids.map(async (id) => (await api.getSession(id)).status))
const untilGone = (...ids: string[]) =>
  vi.waitFor(async () => expect(await statusesOf(ids)).toEqual(ids.map(() => 404)), {
    timeout: 20_000,
  })

/** As though the sessions had been touched last an hour before they expire; their heads may say otherwise. */
const letBeDue = (ids: string[]) =>
  execute(
    service.databaseUrl,
    `UPDATE sessions SET expires_in_s = 60, expiry_due_at = now() - interval '1 hour' WHERE project_id = $1 AND id = ANY ($2)`,
    [project.id, ids],
  )
const dueRow = async (id: string) => {
  const text = 'SELECT expiry_due_at > now() AS is_later FROM sessions WHERE id = $1'
  return (await queryRows<{ is_later: boolean | null }>(service.databaseUrl, text, [id]))[0]
}

describe('a session that expires', () => {
  it('is deleted with its log and the sessions below it when nobody has touched it for so long', async () => {
    await service.startNode()
    const log = await newSessionLog(api, { user: 'ada' })
    expectOk(await log.batch(mixedEntries(6)), 201)
    const child = await newSessionLog(api, { parent: log.id })
    expectOk(await update(log.id, { expires_in_s: 1 }))
    const others = [await newSessionLog(api), await newSessionLog(api, { expires_in_s: 3_600 })]
    await untilGone(log.id, child.id)
    expect(await statusesOf(others.map(({ id }) => id))).toEqual([200, 200])
    const left = 'SELECT seq FROM entries WHERE session_id = ANY ($1)'
    expect(await queryRows(service.databaseUrl, left, [[log.id, child.id]])).toEqual([])
  })

  it('is found by no search from the moment on at which it expires, and leaves the index of words', async () => {
    await switchSearch(service.adminClient(), project.id, true)
    const [due, kept] = [await newSessionLog(api), await newSessionLog(api)]
    for (const log of [due, kept]) expectOk(await log.addEvent('note', { text: 'refund' }))
    const found = () => placesOf(api, 'refund')
    const both = [`${kept.id} 1`, `${due.id} 1`]
    await vi.waitFor(async () => expect(await found()).toEqual(both), { timeout: 20_000, interval: 50 })
    expectOk(await update(due.id, { expires_in_s: 3_600 }))
    expect(await found()).toEqual(both)
    // Housekeeping looks at it in an hour, so only the search knows of it.
    const touched = `UPDATE session_heads SET updated_at = now() - interval '1 hour' WHERE project_id = $1 AND session_id = $2`
    await execute(service.databaseUrl, touched, [project.id, due.id])
    expect(await found()).toEqual([`${kept.id} 1`])
    expectOk(await api.getSession(due.id))
    expectOk(await update(due.id, { expires_in_s: 3_600 }))
    expect(await found()).toEqual(both)
    expectOk(await update(due.id, { expires_in_s: 1 }))
    await untilGone(due.id)
    expect(await found()).toEqual([`${kept.id} 1`])
    const indexed = 'SELECT session_id FROM search_entries WHERE project_id = $1'
    expect(await queryRows(service.databaseUrl, indexed, [project.id])).toEqual([{ session_id: kept.id }])
  })

  it('stays as long as it is touched in time', async () => {
    const log = await newSessionLog(api, { expires_in_s: 60 })
    await letBeDue([log.id])
    await vi.waitFor(async () => expect(await dueRow(log.id)).toEqual({ is_later: true }), 20_000)
    expectOk(await log.addEvent())
  })

  it('stays when it is touched at the last moment, while it is about to be deleted', async () => {
    const log = await newSessionLog(api, { expires_in_s: 60 })
    const given = [project.id, log.id]
    const touchAt = (time: string) =>
      `UPDATE session_heads SET updated_at = ${time} WHERE project_id = $1 AND session_id = $2`
    await execute(service.databaseUrl, touchAt("now() - interval '1 hour'"), given)
    await withConnection(service.databaseUrl, async (toucher) => {
      await toucher.query('BEGIN')
      const lock = 'SELECT FROM session_heads WHERE project_id = $1 AND session_id = $2 FOR UPDATE'
      await toucher.query(lock, given)
      // Housekeeping finds it only now, so that it has to wait for the head.
      await letBeDue([log.id])
      await vi.waitFor(async () => expect(await lockWaits(service.databaseUrl, toucher)).toBeGreaterThan(0), {
        timeout: 20_000,
        interval: 20,
      })
      await toucher.query(touchAt('now()'), given)
      await toucher.query('COMMIT')
    })
    await vi.waitFor(async () => expect(await dueRow(log.id)).toEqual({ is_later: true }), 20_000)
    expectOk(await api.getSession(log.id))
  })

  it('is found among many that do, and many that are only looked at again', async () => {
    const [expired, kept] = await Promise.all(
      ['2026-01-01Z', new Date().toISOString()].map((time) =>
        insertSessionRows(service.databaseUrl, project.id, 700, time),
      ),
    )
    await letBeDue([...expired!, ...kept!])
    await vi.waitFor(
      async () => {
        const { rows } = await withConnection(service.databaseUrl, (connection) =>
          connection.query(
            'SELECT count(*)::int AS sessions, min(expiry_due_at) > now() AS is_later FROM sessions WHERE project_id = $1',
            [project.id],
          ),
        )
        expect(rows).toEqual([{ sessions: 700, is_later: true }])
      },
      { timeout: 30_000 },
    )
    expect(await statusesOf(kept!.slice(0, 20))).toEqual(Array(20).fill(200))
  })
})

describe('expires_in_s', () => {
  it('is shown, compared by use_uuid, changed and taken away, which touches the session', async () => {
    const use_uuid = randomUUID()
    const body = { use_uuid, expires_in_s: 3_600 }
    const created = expectOk(await api.createSession(body), 201)
    expect(created).toMatchObject({ expires_in_s: 3_600 })
    expect(expectOk(await api.createSession(body)).id).toBe(use_uuid)
    expectError(await api.createSession({ ...body, expires_in_s: 60 }), 409, 'session_exists', 'expires_in_s')
    const longer = expectOk(await update(use_uuid, { expires_in_s: 315_360_000 }))
    expect(longer).toEqual({ ...created, expires_in_s: 315_360_000, updated_at: longer.updated_at })
    expect(longer.updated_at > created.updated_at).toBe(true)
    expect(expectOk(await api.listSessions()).items).toEqual([longer])
    const never = expectOk(await update(use_uuid, { expires_in_s: null }))
    expect(never).not.toHaveProperty('expires_in_s')
    expect(expectOk(await api.getSession(use_uuid))).toEqual(never)
  })

  it('must be a number of seconds up to ten years', async () => {
    const { id } = expectOk(await api.createSession({ expires_in_s: null }), 201)
    for (const expires_in_s of [0, -1, 1.5, '60', 315_360_001, 1e300]) {
      expectError(await api.createSession({ expires_in_s }), 400, 'invalid_request', '/expires_in_s')
      expectError(await update(id, { expires_in_s }), 400, 'invalid_request', '/expires_in_s')
    }
    for (const body of [{}, { expires_in_s: 1, user: 'x' }, []])
      expectError(await update(id, body), 400, 'invalid_request')
    expectOk(await api.request('PATCH', `/api/v1/session/${id}`, { rawBody: '{"expires_in_s":6.0e1}' }))
    expectError(await update(NOBODYS_ID, { expires_in_s: 1 }), 404, 'session_not_found')
    const stranger = await service.newClient()
    expectError(await update(id, { expires_in_s: 1 }, stranger), 404, 'session_not_found')
  })

  it('is all that a key learns that may only write', async () => {
    const { id } = expectOk(await api.createSession({ user: 'ada', configs: { secret: 1 } }), 201)
    const issued = { name: 'writer', scopes: ['write'] }
    const { token } = await issueToken(service.adminClient(), project.id, issued)
    const writer = await service.newClient({ token })
    const answer = expectOk(await update(id, { expires_in_s: 60 }, writer))
    expect(answer).toMatchObject({ id, user_id: null, configs: {}, expires_in_s: 60 })
  })

  it('goes with copies, exports and imports, and begins anew with them', async () => {
    const log = await newSessionLog(api, { expires_in_s: 3_600 })
    const short = expectOk(await log.copy()).new_session_id
    for (let n = 0; n < 3; n++) expectOk(await log.batch(mixedEntries(900)), 201)
    const long = expectOk(await log.copy()).new_session_id
    for (const id of [short, long])
      expect(expectOk(await api.getSession(id))).toMatchObject({ expires_in_s: 3_600 })
    await execute(
      service.databaseUrl,
      `UPDATE session_heads SET updated_at = now() - interval '2 hours' WHERE project_id = $1 AND session_id = $2`,
      [project.id, short],
    )
    const { path } = await annals.export(project.name)
    const target = await service.newProject()
    await annals.import(path, target.name)
    const found = await queryRows(
      service.databaseUrl,
      'SELECT expires_in_s, expiry_due_at > now() AS is_later FROM sessions WHERE project_id = $1',
      [target.id],
    )
    expect(found).toEqual(Array(3).fill({ expires_in_s: 3_600, is_later: true }))
    const verified = await annals.run('verify', '--project', target.name)
    expect(verified.code, verified.stdout).toBe(0)
  })
})
