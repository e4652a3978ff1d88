import { hostname, userInfo } from 'node:os'
import { expect, it as test } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { createProject, useService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useService()
// In a database that all files share, others' acts come in between.
const it = test.skipIf(reasonForNoOwnDatabase())

interface Act {
  seq: number
  actor: string
  action: string
  project_id: string
  details: Record<string, unknown>
}
interface Acts {
  items: Act[]
  has_more: boolean
  next_cursor: string
}
const read = async (query: Record<string, string | number> = {}) =>
  expectOk(await service.adminClient().request<Acts>('GET', '/admin/v1/audit', { query }))

it('names who did what on which project, in order, without secrets, and outlives the project', async () => {
  const admin = service.adminClient()
  const { next_cursor } = await read({ limit: 200 })
  const project = await createProject(admin)
  const path = `/admin/v1/projects/${project.id}`
  expectOk(await admin.request('PATCH', path, { body: { max_sessions: 5 } }))
  const { id: token_id, token } = await issueToken(admin, project.id, { name: 'ci', scopes: ['read'] })
  expectOk(await admin.request('DELETE', `${path}/tokens/${token_id}`))
  const env = { DATABASE_URL: service.databaseUrl }
  const set = await runAnnals(['project', 'set', project.name, '--max-tails', '3'], env)
  expect(set.code, set.stderr).toBe(0)
  expectError(await admin.request('DELETE', `${path}/tokens/${NOBODYS_ID}`), 404, 'token_not_found')
  expectOk(await admin.request('DELETE', path))
  const { items, has_more } = await read({ cursor: next_cursor, limit: 200 })
  expect(has_more).toBe(false)
  const cli = `command line of ${userInfo().username}@${hostname()}`
  const api = 'API, from 127.0.0.1'
  expect(items.map(({ actor, action, details }) => [actor, action, details])).toEqual([
    [api, 'project.create', { name: project.name }],
    [api, 'project.change', { max_sessions: 5 }],
    [api, 'token.create', { token_id, name: 'ci', scopes: ['read'] }],
    [api, 'token.revoke', { token_id }],
    [cli, 'project.change', { max_tails: 3 }],
    [api, 'project.delete', {}],
  ])
  expect(new Set(items.map(({ project_id }) => project_id))).toEqual(new Set([project.id]))
  for (const secret of [project.token, token]) expect(JSON.stringify(items)).not.toContain(secret)
  expectError(await (await service.newClient()).request('GET', '/admin/v1/audit'), 401, 'unauthorized')
})

it('numbers acts of many at once without gaps, and a walk by cursor goes on where it ended', async () => {
  const admin = service.adminClient()
  await Promise.all(Array.from({ length: 12 }, () => createProject(admin)))
  const seqs: number[] = []
  let cursor: string | undefined
  for (let more = true; more; ) {
    const page = await read({ limit: 5, ...(cursor && { cursor }) })
    seqs.push(...page.items.map(({ seq }) => seq))
    cursor = page.next_cursor
    more = page.has_more
  }
  expect(seqs).toEqual(seqs.map((_, index) => index + 1))
  expect(seqs.length).toBeGreaterThanOrEqual(12)
  await createProject(admin)
  const { items, next_cursor } = await read({ cursor: cursor! })
  expect(items.map(({ seq }) => seq)).toEqual([seqs.length + 1])
  expect((await read({ cursor: next_cursor })).items).toEqual([])
  // As after a restore, when as many acts have followed.
  await execute(
    service.databaseUrl,
    "UPDATE audit SET created_at = created_at + interval '1 microsecond' WHERE seq = $1",
    [seqs.length + 1],
  )
  expectError(
    await admin.request('GET', '/admin/v1/audit', { query: { cursor: next_cursor } }),
    409,
    'log_diverged',
  )
})
