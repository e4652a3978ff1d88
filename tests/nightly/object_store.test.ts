import { type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startObjectStore, type TestObjectStore } from '../../lab/object_store.ts'
import { blobUrl, bytesOf, errorOf, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { runCommand } from '../harness/command_process.ts'
import { doctor } from '../harness/doctor.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const SOON = { timeout: 20_000 }
const env: Record<string, string> = { ANNALS_RETENTION_MS: '500' }
let store: TestObjectStore

beforeAll(async () => {
  store = await startObjectStore()
  Object.assign(env, store.env)
})
const service = useService(env)
const annals = useTransfers(service, env)
afterAll(() => store.end())

const put = (project: Project, bytes: Buffer, sha256?: string) =>
  putBlob(service.node.url, project.token, bytes, sha256)
const get = (project: Project, bytes: Buffer, options?: Parameters<typeof getBlob>[3]) =>
  getBlob(service.node.url, project.token, sha256Of(bytes), options)
const reference = (bytes: Buffer) => ({ annals_blob: sha256Of(bytes), media_type: 'image/png' })

/** How many blobs a project has in the database, and how many chunks. */
async function rowsOf({ id }: Project) {
  const [row] = await queryRows<{ blobs: string; chunks: string; discarded: string }>(
    service.databaseUrl,
    `SELECT (SELECT count(*) FROM blobs WHERE project_id = $1) AS blobs,
      (SELECT count(*) FROM blob_chunks WHERE project_id = $1) AS chunks,
      (SELECT count(*) FROM discarded_objects WHERE project_id = $1) AS discarded`,
    [id],
  )
  return [Number(row!.blobs), Number(row!.chunks), Number(row!.discarded)]
}

/** A session of a user with an event that refers to a blob, and a message with base64. */
async function newAttachments(project: Project, user: string) {
  const api = await service.newClient({ token: project.token })
  const [sent, inline] = [newBytes(700_001), newBytes(50_000)]
  expect((await put(project, sent)).status).toBe(201)
  const log = await newSessionLog(api, { user })
  expectOk(await log.addEvent('note', { file: reference(sent) }))
  const url = `data:image/png;base64,${inline.toString('base64')}`
  const blob = { role: 'user', content: [{ type: 'image_url', image_url: { url } }] }
  expectOk(await log.add(blob), 201)
  return { api, log, sent, inline, blob }
}

// In a database that all files share, nodes with other stores would take the notes of its objects for theirs.
const withOwnDatabase = it.skipIf(reasonForNoOwnDatabase())

describe('with an object store', () => {
  it('the bytes of a blob are there and not in the database, and come back whole or in part', async () => {
    const project = await service.newProject()
    const bytes = newBytes(700_001)
    const both = await Promise.all([put(project, bytes), put(project, bytes)])
    expect(both.map(({ status }) => status)).toContain(201)
    expect((await put(project, bytes)).status).toBe(200)
    await vi.waitFor(async () => expect(await store.keysOf(project.id)).toHaveLength(1), SOON)
    expect((await rowsOf(project)).slice(0, 2)).toEqual([1, 0])
    expect((await bytesOf(await get(project, bytes))).equals(bytes)).toBe(true)
    const some = await get(project, bytes, { headers: { Range: 'bytes=300000-300009' } })
    expect(some.status).toBe(206)
    expect((await bytesOf(some)).equals(bytes.subarray(300_000, 300_010))).toBe(true)
    const head = await get(project, bytes, { method: 'HEAD' })
    expect(head.headers.get('content-length')).toBe(String(bytes.length))
    const empty = Buffer.alloc(0)
    expect((await put(project, empty)).status).toBe(201)
    expect(await bytesOf(await get(project, empty))).toEqual(empty)
  })

  it('nothing is kept of bytes with another hash', async () => {
    const project = await service.newProject()
    const refused = await errorOf(await put(project, newBytes(300_000), sha256Of(newBytes(20))))
    expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(await store.keysOf(project.id)).toEqual([])
    expect(await rowsOf(project)).toEqual([0, 0, 0])
  })

  it('a blob may have more than the database takes, up to a gibibyte', async () => {
    const project = await service.newProject()
    expect((await put(project, Buffer.alloc(27_000_000))).status).toBe(201)
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { Authorization: `Bearer ${project.token}`, 'Content-Length': 1024 ** 3 + 1 }
      const sent = request(blobUrl(service.node.url, '0'.repeat(64)), { method: 'PUT', headers })
      sent.on('response', (response) => {
        resolve(response)
        sent.destroy()
      })
      sent.on('error', reject)
      sent.flushHeaders()
    })
    expect(answer.statusCode).toBe(413)
  })

  it('messages are read with their bytes, and signed URLs lead to the store', async () => {
    const project = await service.newProject()
    const { api, log, inline, blob } = await newAttachments(project, 'ada')
    const path = `/api/v1/session/${log.id}/messages?with_asset_public_url=true`
    const page = expectOk(
      await api.request<{ items: unknown[]; public_urls: Record<string, { url: string }> }>('GET', path),
    )
    expect(page.items).toEqual([blob])
    const { url } = page.public_urls[sha256Of(inline)]!
    const redirected = await fetch(url, { redirect: 'manual' })
    expect(redirected.status).toBe(302)
    expect(redirected.headers.get('location')).toContain(env.ANNALS_S3_ENDPOINT)
    const answer = await fetch(url, { headers: { Range: 'bytes=5-9' } })
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment/)
    expect((await bytesOf(answer)).equals(inline.subarray(5, 10))).toBe(true)
    expect((await fetch(url, { method: 'HEAD' })).headers.get('content-length')).toBe('50000')
    expectOk(await api.request('DELETE', `/api/v1/session/${log.id}`))
    expect((await fetch(url)).status).toBe(404)
  })

  it('erasing a user, a session or a project leaves no object', async () => {
    const project = await service.newProject()
    const { api } = await newAttachments(project, 'ada')
    const { log } = await newAttachments(project, 'bob')
    await newAttachments(project, 'eve')
    expect(await store.keysOf(project.id)).toHaveLength(6)
    const receipt = expectOk(await api.request<{ deleted: object }>('DELETE', '/api/v1/user/ada'))
    expect(receipt).toEqual({ deleted: expect.objectContaining({ sessions: 1, blobs: 2 }) })
    expect(await store.keysOf(project.id)).toHaveLength(4)
    expectOk(await api.request('DELETE', `/api/v1/session/${log.id}`))
    expect(await store.keysOf(project.id)).toHaveLength(2)
    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}`))
    expect(await store.keysOf(project.id)).toEqual([])
    expect(await rowsOf(project)).toEqual([0, 0, 0])
  })

  withOwnDatabase(
    'an upload that a killed process left, and a blob that nothing refers to, are deleted after a day',
    async () => {
      const project = await service.newProject()
      for (const bytes of [newBytes(10), newBytes(20)]) expect((await put(project, bytes)).status).toBe(201)
      await execute(
        service.databaseUrl,
        `UPDATE blobs SET unreferenced_since = now() - interval '25 hours', sha256 = CASE WHEN bytes = 10 THEN sha256 END
       WHERE project_id = $1`,
        [project.id],
      )
      await vi.waitFor(async () => {
        expect(await store.keysOf(project.id)).toEqual([])
        expect(await rowsOf(project)).toEqual([0, 0, 0])
      }, SOON)
    },
  )

  it('an export has the bytes, which an import restores, and a verification finds nothing', async () => {
    const project = await service.newProject()
    const { sent } = await newAttachments(project, 'ada')
    const { path, body } = await annals.export(project.name)
    const copy = await service.newProject()
    await annals.import(path, copy.name)
    const parsed = (lines: string[]) => lines.map((line) => JSON.stringify(JSON.parse(line))).sort()
    expect(parsed((await annals.export(copy.name)).body)).toEqual(parsed(body))
    expect((await bytesOf(await get(copy, sent))).equals(sent)).toBe(true)
    const verified = await annals.run('verify', '--json', '--project', project.name)
    expect(verified.code, verified.stdout).toBe(0)
  })

  it('a verification finds what is missing, and what has other bytes or more of them', async () => {
    const project = await service.newProject()
    const bytes = [1, 2, 3, 4].map((n) => newBytes(300_000 + n))
    for (const one of bytes) await put(project, one)
    const keys = await store.keysOf(project.id)
    await store.damage(keys[0]!)
    await store.damage(keys[1]!, newBytes(1_000))
    await store.damage(keys[2]!, Buffer.concat([bytes[2]!, newBytes(1)]))
    const { code, stdout } = await annals.run('verify', '--json', '--project', project.name)
    expect(code).not.toBe(0)
    const { findings } = JSON.parse(stdout) as { findings: Array<{ check: string; place: string }> }
    expect(findings.map(({ place }) => place).sort()).toEqual(
      keys.slice(0, 3).map((key) => `blob ${key.split('/')[1]}`),
    )
    expect(await errorOf(await get(project, bytes[0]!))).toMatchObject({ status: 404 })
    // An export leaves out these bytes, says so, and has all the others.
    const exported = await annals.run('export', '--project', project.name)
    expect(exported.stderr).toContain('the bytes of 3 blobs could not be read')
    expect(exported.stdout.match(/"lost":"/g)).toHaveLength(3)
    expect(exported.stdout.trimEnd().split('\n').at(-1)).toContain('"kind":"end"')
  })

  it('a command that does not know the store says so, and does not blame the database', async () => {
    const project = await service.newProject()
    await newAttachments(project, 'ada')
    for (const [others, said] of [
      [{ ANNALS_S3_BUCKET: '' }, 'Set ANNALS_S3_BUCKET.'],
      [{ ANNALS_S3_ENDPOINT: 'http://127.0.0.1:9' }, 'The store of attachments cannot be reached'],
    ] as const) {
      const settings = { ...env, ...others, DATABASE_URL: service.databaseUrl }
      const { code, stderr } = await runCommand(['verify', '--project', project.name], settings)
      expect(stderr).toContain(said)
      expect(stderr).not.toContain('database became')
      expect(code).toBe(5)
    }
  })

  it('the doctor says whether it can be reached', async () => {
    const { of } = await doctor({ ...env, DATABASE_URL: service.databaseUrl })
    expect(of('attachments')).toMatchObject([{ state: 'ok' }])
    const other = { ...env, ANNALS_S3_BUCKET: 'nothing-here', DATABASE_URL: service.databaseUrl }
    expect((await doctor(other)).of('attachments')).toMatchObject([{ state: 'failure' }])
  })
})

describe('while the object store is away', () => {
  withOwnDatabase('uploads and reads are 503, and what is erased is deleted once it is back', async () => {
    const project = await service.newProject()
    const { api, sent } = await newAttachments(project, 'ada')
    await store.stop()
    try {
      const bytes = newBytes(1_000)
      expect(await errorOf(await put(project, bytes))).toMatchObject({ status: 503, error: 'unavailable' })
      expect((await rowsOf(project))[0]).toBe(2)
      expect(await errorOf(await get(project, sent))).toMatchObject({ status: 503, error: 'unavailable' })
      const receipt = expectOk(await api.request<object>('DELETE', '/api/v1/user/ada'))
      expect(receipt).toMatchObject({ deleted: { blobs: 2 }, pending: { objects: 3 } })
      expect((await get(project, sent)).status).toBe(404)
      expect((await rowsOf(project))[2]).toBe(3)
    } finally {
      await store.start()
    }
    await vi.waitFor(async () => {
      expect(await store.keysOf(project.id)).toEqual([])
      expect(await rowsOf(project)).toEqual([0, 0, 0])
    }, SOON)
  })
})
