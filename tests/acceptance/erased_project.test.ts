import { randomBytes } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { putBlob } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useSharedService()

it('refuses the key of an erased project while it is cached, and stores nothing', async () => {
  const { id } = await service.newProject()
  const admin = service.adminClient()
  const { token } = await issueToken(admin, id, { name: 'cached', scopes: ['read', 'write', 'admin'] })
  const client = await service.newClient({ token })
  expectOk(await client.request('GET', '/api/v1/session'))
  expectOk(await admin.request('DELETE', `/admin/v1/projects/${id}`))
  const span = {
    traceId: randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    name: 'chat',
    startTimeUnixNano: '1790000000000000000',
    endTimeUnixNano: '1790000001000000000',
    attributes: [{ key: 'gen_ai.operation.name', value: { stringValue: 'chat' } }],
  }
  const writes: Array<[string, string, unknown?]> = [
    ['POST', '/session', {}],
    ['POST', '/session', { user: 'new' }],
    ['POST', '/learning_spaces', {}],
    ['POST', '/learning_spaces', { user: 'new' }],
    ['POST', '/webhooks', { url: 'https://example.com/hook', events: ['event.never'] }],
    ['PUT', '/redaction', {}],
    ['POST', '/otel/v1/traces', { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }],
    ['GET', '/session?order_by=last_activity'],
    ['GET', '/tools'],
  ]
  const answers = await Promise.all(
    writes.map(async ([method, path, body]) => client.request(method, `/api/v1${path}`, { body })),
  )
  for (const answer of answers) expectError(answer, 401, 'unauthorized')
  const put = await putBlob(service.node.url, token, randomBytes(10))
  expect(put.status).toBe(401)
  const left = 'SELECT FROM project_consumers WHERE project_id = $1'
  expect(await queryRows(service.databaseUrl, left, [id])).toEqual([])
})

it('refuses the key of a project that is erased while a webhook is being created', async () => {
  const { id, token } = await service.newProject()
  const client = await service.newClient({ token })
  const create = () =>
    client.request('POST', '/api/v1/webhooks', {
      body: { url: 'https://example.com/hook', events: ['event.never'] },
    })
  expectOk(await create(), 201)
  await withConnection(service.databaseUrl, async (erasing) => {
    await erasing.query('BEGIN')
    for (const table of ['project_consumers', 'webhooks', 'api_keys'])
      await erasing.query(`DELETE FROM ${table} WHERE project_id = $1`, [id])
    await erasing.query('DELETE FROM projects WHERE id = $1', [id])
    const answer = create()
    await vi.waitFor(
      async () => expect(await lockWaits(service.databaseUrl, erasing)).toBeGreaterThan(0),
      15_000,
    )
    await erasing.query('COMMIT')
    expectError(await answer, 401, 'unauthorized')
  })
})
