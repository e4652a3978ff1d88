import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { useSharedService } from '../harness/service.ts'
import { verifyDatabase } from '../harness/verification.ts'

const service = useSharedService()
const annals = useTransfers(service)

it('a session keeps what is retracted in it, however much later the retraction is in the log', async () => {
  const project = await service.newProject()
  const client = await service.newClient({ token: project.token })
  const { id } = expectOk(await client.createSession({}), 201)
  const blob = { role: 'user', content: 'What is retracted counts no tokens.' }
  const entries = [
    { kind: 'message', blob, format: 'openai' },
    { kind: 'message', blob, format: 'openai' },
  ]
  expectOk(await client.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
  const events = Array.from({ length: 1_000 }, (_, n) => ({ kind: 'event', type: 'tick', data: { n } }))
  for (const _ of [1, 2])
    expectOk(
      await client.request('POST', `/api/v1/session/${id}/entries`, { body: { entries: events } }),
      201,
    )
  const { items } = expectOk(
    await client.request<{ items: Array<{ id: string }> }>('GET', `/api/v1/session/${id}/timeline?limit=1`),
  )
  const retraction = { body: { ids: [items[0]!.id] } }
  expectOk(await client.request('POST', `/api/v1/session/${id}/retractions`, retraction))
  const first = await annals.export(project.name)
  expect(JSON.parse(first.body[1]!)).toMatchObject({ seq: 1, retracted_by: 2_003 })
  const target = await service.newProject()
  await annals.import(first.path, target.id)
  expect((await annals.export(target.name)).body).toEqual(first.body)
  const { total_tokens } = JSON.parse(first.body[0]!) as { total_tokens: number }
  expect(total_tokens).toBe((JSON.parse(first.body[2]!) as { tokens: number }).tokens)
})

it('a message that changes between the line of its session and its own leaves a sound session behind', async () => {
  const project = await service.newProject()
  const client = await service.newClient({ token: project.token })
  const { id } = expectOk(await client.createSession({}), 201)
  const blob = { role: 'user', content: 'Hi' }
  const body = { entries: [{ kind: 'message', blob, format: 'openai' }] }
  expectOk(await client.request('POST', `/api/v1/session/${id}/entries`, { body }), 201)
  const { path, lines } = await annals.export(project.name)
  const changed = lines[2]!.replace(/"updated_at":"[^"]+"/, '"updated_at":"2037-01-01T00:00:00.000000Z"')
  const text = [...lines.slice(0, 2), changed].map((line) => `${line}\n`).join('')
  const sha256 = createHash('sha256').update(text).digest('hex')
  await writeFile(path, `${text}${JSON.stringify({ kind: 'end', lines: 3, sha256 })}\n`)
  const target = await service.newProject()
  await annals.import(path, target.name)
  expect((await verifyDatabase(service.databaseUrl, '--project', target.name)).found).toEqual({})
})

it('a session keeps its compactions, and an import refuses a summary of entries that were changed', async () => {
  const project = await service.newProject()
  const client = await service.newClient({ token: project.token })
  const { id } = expectOk(await client.createSession({}), 201)
  const path = `/api/v1/session/${id}`
  const entries = ['one', 'two', 'three'].map((content) => ({
    kind: 'message',
    blob: { role: 'user', content, rate: 1e2 },
  }))
  const { items } = expectOk(
    await client.request<{ items: Array<{ id: string }> }>('POST', `${path}/entries`, { body: { entries } }),
    201,
  )
  const compact = async (to_seq: number) => {
    const body = { to_seq, summary: { blob: { role: 'user', content: `up to ${to_seq}` } } }
    expectOk(await client.request('POST', `${path}/compactions`, { body }), 201)
  }
  for (const to_seq of [1, 2, 3]) await compact(to_seq)
  expectOk(await client.request('POST', `${path}/retractions`, { body: { ids: [items[2]!.id] } }))
  const exported = await annals.export(project.name)
  const target = await service.newProject()
  await annals.import(exported.path, target.id)
  expect((await annals.export(target.name)).body).toEqual(exported.body)
  const imported = await service.newClient({ token: target.token })
  const context = await imported.request<{ compaction_seq: number }>('GET', `${path}/context`)
  expect(expectOk(context).compaction_seq).toBe(5)
  expect((await verifyDatabase(service.databaseUrl, '--project', target.name)).found).toEqual({})

  const lines = exported.lines.slice(0, -1).map((line) => line.replace('"content": "two"', '"content": "2"'))
  const text = lines.map((line) => `${line}\n`).join('')
  const sha256 = createHash('sha256').update(text).digest('hex')
  await writeFile(exported.path, `${text}${JSON.stringify({ kind: 'end', lines: lines.length, sha256 })}\n`)
  const other = await service.newProject()
  const refused = await annals.run('import', exported.path, '--project', other.name)
  expect(refused.stderr).toContain('its digest is not that of the entries')
  expect((await annals.export(other.name)).body).toEqual([])
})
