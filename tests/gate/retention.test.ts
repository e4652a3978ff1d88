import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { insertSessionRows } from '../harness/session_rows.ts'
import { execute } from '../harness/sql.ts'

interface ProjectJson {
  id: string
  retention_days: number | null
}

const service = useService({ ANNALS_RETENTION_MS: '200' })
let project: Project
let api: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
const oldSessions = (count: number, days: number, project_id = project.id) =>
  insertSessionRows(service.databaseUrl, project_id, count, daysAgo(days))
const change = (body: unknown, id = project.id) =>
  service.adminClient().request<ProjectJson>('PATCH', `/admin/v1/projects/${id}`, { body })
const statusOf = async (id: string) => (await api.getSession(id)).status

describe("a project's retention", () => {
  it('deletes what nobody has touched for so many days, at more than one node, and nothing else', async () => {
    await service.startNode()
    const [old, young] = [await oldSessions(30, 31), await oldSessions(5, 29)]
    const busy = await newSessionLog(api)
    const other = await service.newProject()
    const others = await oldSessions(2, 1_000, other.id)
    expect(expectOk(await change({ retention_days: 30 })).retention_days).toBe(30)
    await vi.waitFor(async () => expect(await Promise.all(old.map(statusOf))).toEqual(old.map(() => 404)), {
      timeout: 20_000,
    })
    expect(await Promise.all([...young, busy.id].map(statusOf))).toEqual([...young, busy.id].map(() => 200))
    const otherApi = await service.newClient({ token: other.token })
    for (const id of others) expectOk(await otherApi.getSession(id))
  })

  it('keeps a session as long as others stand below it, and takes it after the last of them', async () => {
    const [parent, child, kept] = (await oldSessions(3, 31)) as [string, string, string]
    await execute(
      service.databaseUrl,
      'UPDATE sessions SET parent_id = $2 WHERE project_id = $1 AND id = $3',
      [...[project.id, parent, child]],
    )
    const young = expectOk(await api.createSession({ parent: kept }), 201).id
    expectOk(await change({ retention_days: 30 }))
    await vi.waitFor(
      async () => expect(await Promise.all([parent, child].map(statusOf))).toEqual([404, 404]),
      {
        timeout: 20_000,
      },
    )
    expect(await Promise.all([kept, young].map(statusOf))).toEqual([200, 200])
  })

  it('is shown with the project, taken away by null, and left alone by a change that does not name it', async () => {
    const admin = service.adminClient()
    const name = `kept-${randomUUID()}`
    const made = await admin.request<{ project: ProjectJson }>('POST', '/admin/v1/projects', {
      body: { name, retention_days: 7 },
    })
    const { id, retention_days } = expectOk(made, 201).project
    expect(retention_days).toBe(7)
    expect(expectOk(await change({}, id)).retention_days).toBe(7)
    expect(expectOk(await change({ retention_days: null }, id)).retention_days).toBe(null)
    const listed = await admin.request<{ items: ProjectJson[] }>('GET', '/admin/v1/projects')
    expect(expectOk(listed).items.find((item) => item.id === id)?.retention_days).toBe(null)
    for (const retention_days of [0, -1, 1.5, '7', 1e9]) {
      expectError(await change({ retention_days }, id), 400, 'invalid_request')
    }
    expectError(await change({ retention_days: 1 }, randomUUID()), 404, 'project_not_found')
  })

  it('is set by the command line', async () => {
    const set = (...args: string[]) =>
      runCommand(['project', 'set', project.name, ...args], { DATABASE_URL: service.databaseUrl })
    const json = async (...args: string[]) => JSON.parse((await set(...args, '--json')).stdout) as ProjectJson
    expect((await json('--retention-days', '90')).retention_days).toBe(90)
    expect((await json('--retention-days', 'none')).retention_days).toBe(null)
    for (const args of [[], ['--retention-days', '0'], ['--retention-days', 'x']]) {
      const result = await set(...args)
      expect(result.code).toBe(2)
      expect(result.stderr).not.toBe('')
    }
    const unknown = await runCommand(['project', 'set', 'no such project', '--retention-days', '1'], {
      DATABASE_URL: service.databaseUrl,
    })
    expect(unknown.code).toBe(3)
    const unnamed = await runCommand(['project', 'set', '--retention-days', '1'], {
      DATABASE_URL: service.databaseUrl,
    })
    expect(unnamed).toMatchObject({ code: 2, stderr: expect.stringContaining('There are several projects') })
  })
})
