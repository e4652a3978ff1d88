import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { honest } from '../../lab/model_scripts.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { useModelProjects, user } from '../harness/model_project.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'

const NO_USE = {
  ...{ sessions: 0, entries: 0, bytes: 0, blobs: 0, blob_bytes: 0 },
  ...{ statements: 0, model_tokens: 0 },
}
type Day = typeof NO_USE & { day: string }
interface Usage {
  entries: { used: number }
  bytes: { used: number }
  statements: { used: number }
  model_tokens: { used: number; max: number }
  days: Day[]
}

const DATA = { text: 'x'.repeat(89) }
const EVENT = { kind: 'event', type: 'note', data: DATA }
/** Of the JSON in which an event with this data is sent. */
const BYTES = JSON.stringify({ type: 'note', data: DATA }).length

const service = useService()
const newModelProject = useModelProjects(service)
const files = useTransfers(service)

const usageOf = async (api: ApiClient, days?: number) =>
  expectOk(await api.request<Usage>('GET', '/api/v1/usage', { query: { days } }))
/** What the days add up to: a test may pass midnight. */
const sumOf = (days: Day[]) =>
  days.reduce(
    (sum, day) => {
      for (const name of Object.keys(NO_USE) as (keyof typeof NO_USE)[]) sum[name] += day[name]
      return sum
    },
    { ...NO_USE },
  )

describe('usage by day', () => {
  it('has what two nodes stored, each entry once, and keeps what was deleted', async () => {
    const other = await service.startNode()
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const there = await service.newClient({ token: project.token, node: other })
    const log = await newSessionLog(api)
    for (const client of [api, there, there])
      expectOk(await sessionLog(client, log.id).addEvent('note', DATA))
    const keyed = { headers: { 'Idempotency-Key': randomUUID() } }
    for (const _ of [1, 2]) expectOk(await api.appendEvent(log.id, { type: 'note', data: DATA }, keyed))
    const known = { ...EVENT, id: randomUUID() }
    for (const entries of [[known], [known, { ...EVENT, id: randomUUID() }]])
      expectOk(await log.batch(entries), 201)
    const ids = JSON.stringify({ ...known }).length - JSON.stringify(EVENT).length
    expectError(
      await api.appendEvent(log.id, { type: 'note', data: DATA }, { headers: { 'If-Match': '"1"' } }),
      409,
      'seq_conflict',
    )
    const blob = newBytes(3_000)
    for (const node of [service.node, other]) await putBlob(node.url, project.token, blob)
    const stored = { ...NO_USE, sessions: 1, entries: 6, blobs: 1, blob_bytes: 3_000 }
    await usageOf(there)
    const before = sumOf((await usageOf(api)).days)
    expect(before).toEqual({ ...stored, bytes: expect.any(Number) })
    expect(before.bytes).toBeGreaterThanOrEqual(6 * BYTES)
    expect(before.bytes).toBeLessThanOrEqual(6 * BYTES + 2 * (ids + '"kind":"event",'.length))

    const { new_session_id } = expectOk(await log.copy())
    expectOk(await api.deleteSession(new_session_id))
    const path = `/admin/v1/projects/${project.id}/usage`
    const { days } = expectOk(await service.adminClient().request<Usage>('GET', path))
    expect(sumOf(days)).toEqual({ ...stored, sessions: 2, entries: 12, bytes: 2 * before.bytes })

    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}`))
    const left = 'SELECT day FROM usage_days WHERE project_id = $1'
    expect(await queryRows(service.databaseUrl, left, [project.id])).toEqual([])
  })

  it('has what an import and the demo store, on the day on which they run, and once', async () => {
    const source = await service.newProject()
    const api = await service.newClient({ token: source.token })
    const log = await newSessionLog(api)
    const blob = newBytes(3_000)
    await putBlob(service.node.url, source.token, blob)
    const image = { annals_blob: sha256Of(blob), media_type: 'image/png' }
    for (const data of [DATA, image]) expectOk(await log.addEvent('note', data))
    const { path } = await files.export(source.name)
    const target = await service.newProject()
    const there = await service.newClient({ token: target.token })
    const stored = async () => sumOf((await usageOf(there)).days)
    await files.import(path, target.name, '--dry-run')
    expect(await stored()).toEqual(NO_USE)
    for (const _ of [1, 2]) await files.import(path, target.name)
    expect(await stored()).toEqual(sumOf((await usageOf(api)).days))
    expect((await files.run('demo', '--project', target.name)).code).toBe(0)
    expect(await stored()).toMatchObject({ sessions: 13, entries: 194 })
  })

  it('has as many days as are asked for, to today, the newest first and only those with use', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    await newSessionLog(api)
    for (const ago of [1, 40, 365])
      await execute(
        service.databaseUrl,
        "INSERT INTO usage_days (project_id, day, entries) VALUES ($1, (now() AT TIME ZONE 'UTC')::date - $2::int, $2::int)",
        [project.id, ago],
      )
    const entriesOf = async (days?: number) => (await usageOf(api, days)).days.map(({ entries }) => entries)
    expect(await entriesOf(1)).toEqual([0])
    expect(await entriesOf()).toEqual([0, 1])
    expect(await entriesOf(366)).toEqual([0, 1, 40, 365])
    for (const days of [0, 367, 1.5, 'all'])
      expectError(
        await api.request('GET', '/api/v1/usage', { query: { days } }),
        400,
        'invalid_request',
        'days',
      )
  })

  it('is complete after SIGTERM, after kill -9 lacks at most what was not yet written, and counts no retry; what there is is exact', async () => {
    const { token } = await service.newProject()
    const ended = { written: 0, at_most: 0 }
    for (const end of ['stop', 'kill'] as const) {
      const node = await service.startNode()
      const api = await service.newClient({ token, node })
      const log = await newSessionLog(api)
      for (let n = 0; n < 5; n++) expectOk(await log.addEvent('note', DATA))
      if (end === 'kill') await usageOf(api)
      const keys = Array.from({ length: 5 }, () => ({ headers: { 'Idempotency-Key': randomUUID() } }))
      const event = { type: 'note', data: DATA }
      for (const key of keys) expectOk(await api.appendEvent(log.id, event, key))
      await node[end]()
      // Whoever lost the answers sends all of it again, to another node.
      const there = await service.newClient({ token })
      for (const key of keys) expectOk(await there.appendEvent(log.id, event, key))
      ended.at_most += 10
      ended.written += end === 'stop' ? 10 : 5
    }
    const api = await service.newClient({ token })
    const usage = await usageOf(api)
    expect([usage.entries.used, usage.bytes.used]).toEqual([20, 20 * BYTES])
    const { entries, bytes } = sumOf(usage.days)
    expect(entries).toBeGreaterThanOrEqual(ended.written)
    expect(entries).toBeLessThanOrEqual(ended.at_most)
    expect(bytes).toBe(entries * BYTES)
  })
})

describe('the quota of model tokens a day', () => {
  it('is named by the space and by a refusal when it is used up, and learning goes on by itself the next day', async () => {
    const { newSpace, addRun, reflected, api, post, model, project } = await newModelProject(honest)
    const setMax = async (max_model_tokens_per_day: number | null) =>
      expectOk(
        await service
          .adminClient()
          .request('PATCH', `/admin/v1/projects/${project.id}`, { body: { max_model_tokens_per_day } }),
      )
    const space = await newSpace('suggest')
    await reflected(space, await addRun(space, 'ada', [user('Hello?')], { reward: 1 }))
    const { used } = (await usageOf(api)).model_tokens
    const [call] = await queryRows<{ used: string }>(
      service.databaseUrl,
      'SELECT sum(tokens_in + tokens_out) AS used FROM learning_calls WHERE project_id = $1',
      [project.id],
    )
    expect(used).toBe(Number(call!.used))

    await setMax(used + 1)
    const session = await addRun(space, 'bob', [user('And who are you?')], { reward: 1 })
    const path = `/api/v1/learning_spaces/${space}/sessions/${session}`
    await vi.waitFor(async () => {
      const { status, error } = expectOk(await api.request<{ status: string; error: string }>('GET', path))
      expect([status, error]).toEqual(['queued', expect.stringContaining('max_model_tokens_per_day')])
    }, 40_000)
    expect(model.asked).toHaveLength(1)
    await setMax(used)
    const now = { session_id: session, now: true }
    const refused = await post(`/learning_spaces/${space}/learn`, now)
    expectError(refused, 403, 'quota_exceeded', 'max_model_tokens_per_day', `${used} tokens`)

    await setMax(used + 10_000)
    await execute(service.databaseUrl, 'UPDATE usage_days SET day = day - 1 WHERE project_id = $1', [
      project.id,
    ])
    await execute(
      service.databaseUrl,
      'UPDATE space_sessions SET due_at = now() WHERE project_id = $1 AND due_at IS NOT NULL',
      [project.id],
    )
    await reflected(space, session)
    const { days, model_tokens } = await usageOf(api)
    expect(days.map((day) => day.model_tokens)).toEqual([model_tokens.used, used])
    // Deleting the space gives nothing back.
    expectOk(await api.request('DELETE', `/api/v1/learning_spaces/${space}`))
    expect((await usageOf(api)).model_tokens).toEqual(model_tokens)
  })
})
