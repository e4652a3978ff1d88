import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHUNK_BYTES, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'

const SOON = { timeout: 20_000 }
const service = useService({ ANNALS_RETENTION_MS: '200' })

interface Place {
  project: Project
  api: ApiClient
  log: SessionLog
}

async function newPlace(user?: string): Promise<Place> {
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  return { project, api, log: await newSessionLog(api, user === undefined ? {} : { user }) }
}

async function newBlob({ project }: Place, length = 1_000): Promise<{ bytes: Buffer; sha256: string }> {
  const bytes = newBytes(length)
  expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  return { bytes, sha256: sha256Of(bytes) }
}

const statusOf = async ({ project }: Place, sha256: string) =>
  (await getBlob(service.node.url, project.token, sha256, { method: 'HEAD' })).status

const referenceTo = (sha256: string) => ({ annals_blob: sha256, media_type: 'image/png' })

/** Each format's message with an image, whose bytes are a reference, and as it reads with the bytes. */
const IMAGES: Array<[string, (bytes: unknown, url: unknown) => object]> = [
  ['openai', (_, url) => ({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] })],
  [
    'anthropic',
    (data) => ({
      role: 'user',
      content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
    }),
  ],
  ['gemini', (data) => ({ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] })],
  [
    'responses',
    (_, url) => ({
      type: 'message',
      role: 'user',
      content: [{ type: 'input_image', detail: 'auto', image_url: url }],
    }),
  ],
]

describe('a reference to a blob', () => {
  it.each(IMAGES)('in a message of %s is read as the bytes, in every format', async (format, image) => {
    const place = await newPlace()
    const { bytes, sha256 } = await newBlob(place, 2 * CHUNK_BYTES + 11)
    const reference = referenceTo(sha256)
    const stored = await place.log.add(image(reference, reference), { format })
    expectOk(stored, 201)
    expect(stored.text).toContain(sha256)
    const data = bytes.toString('base64')
    const url = `data:image/png;base64,${data}`
    for (const [other, read] of IMAGES) {
      const path = `/api/v1/session/${place.log.id}/messages?format=${other}`
      const { items } = expectOk(await place.api.request<{ items: object[] }>('GET', path))
      // Compared without showing them, since they are long; some formats write out a default.
      const plain = (value: unknown) =>
        JSON.parse(JSON.stringify(value), (key, member) => (key === 'detail' ? undefined : member))
      expect(isDeepStrictEqual(plain(items), plain([read(data, url)]))).toBe(true)
    }
    const timeline = await place.api.request('GET', `/api/v1/session/${place.log.id}/timeline`)
    expect(timeline.text).toContain(sha256)
    expect(timeline.text.includes(data.slice(0, 100))).toBe(false)
  })

  it('is stored only with a blob that the project has, and the refusal names its place', async () => {
    const place = await newPlace()
    const elsewhere = await newBlob(await newPlace())
    const data = { files: [{ 'a/b': referenceTo(elsewhere.sha256) }] }
    expectError(
      await place.log.addEvent('note', data),
      409,
      'blob_missing',
      '/data/files/0/a~1b',
      elsewhere.sha256,
    )
    const batch = [
      { kind: 'event', type: 'fine', data: {} },
      { kind: 'event', type: 'note', data },
    ]
    expectError(await place.log.batch(batch), 409, 'blob_missing', '/entries/1/data/files/0/a~1b')
    const [, image] = IMAGES[0]!
    const reference = referenceTo(elsewhere.sha256)
    expectError(
      await place.log.add(image(reference, reference)),
      409,
      'blob_missing',
      '/blob/content/0/image_url/url',
    )
    expect(expectOk(await place.log.timeline()).items).toEqual([])
  })

  it.each([
    [{ annals_blob: 'abc', media_type: 'image/png' }, '/data/file/annals_blob'],
    [{ annals_blob: 'a'.repeat(64) }, '/data/file/media_type'],
    [{ annals_blob: 'a'.repeat(64), media_type: 'image/png', filename: 3 }, '/data/file/filename'],
  ])('that is malformed is refused: %j', async (file, pointer) => {
    const { log } = await newPlace()
    expectError(await log.addEvent('note', { file }), 400, 'invalid_request', pointer)
  })

  it('keeps its blob; without one, a blob is deleted after a day', async () => {
    const place = await newPlace()
    const [kept, unused, fresh] = [await newBlob(place), await newBlob(place), await newBlob(place)]
    expectOk(await place.log.addEvent('note', { file: referenceTo(kept.sha256) }))
    await execute(
      service.databaseUrl,
      "UPDATE blobs SET unreferenced_since = now() - interval '25 hours' WHERE project_id = $1 AND sha256 <> $2",
      [place.project.id, fresh.sha256],
    )
    await vi.waitFor(async () => expect(await statusOf(place, unused.sha256)).toBe(404), SOON)
    expect(await statusOf(place, kept.sha256)).toBe(200)
    expect(await statusOf(place, fresh.sha256)).toBe(200)
  })

  it('that is added while its blob is deleted finds it there, or is refused: never neither', async () => {
    const place = await newPlace()
    for (let round = 0; round < 10; round++) {
      const { sha256 } = await newBlob(place)
      await execute(
        service.databaseUrl,
        "UPDATE blobs SET unreferenced_since = now() - interval '25 hours' WHERE project_id = $1 AND sha256 = $2",
        [place.project.id, sha256],
      )
      const answer = await place.log.addEvent('note', { file: referenceTo(sha256) })
      if (answer.status === 409) expectError(answer, 409, 'blob_missing')
      else expectOk(answer)
      expect(await statusOf(place, sha256)).toBe(answer.status === 409 ? 404 : 200)
    }
  })

  it('that is retried with its key is stored once', async () => {
    const place = await newPlace()
    const { sha256 } = await newBlob(place)
    const headers = { 'Idempotency-Key': randomUUID() }
    const send = () =>
      place.api.request('POST', `/api/v1/session/${place.log.id}/events`, {
        body: { type: 'note', data: { file: referenceTo(sha256) } },
        headers,
      })
    const first = await send()
    expectOk(first)
    expect((await send()).text).toBe(first.text)
  })
})

describe('what is erased', () => {
  const rowsOf = async (project_id: string, table: string) =>
    (await queryRows(service.databaseUrl, `SELECT 1 FROM ${table} WHERE project_id = $1`, [project_id]))
      .length

  it('takes the blobs along that nothing else refers to, and counts them', async () => {
    const place = await newPlace('alice')
    const bob = await newSessionLog(place.api, { user: 'bob' })
    const [own, shared] = [await newBlob(place, CHUNK_BYTES + 5), await newBlob(place)]
    const both = { files: [referenceTo(own.sha256), referenceTo(shared.sha256)] }
    expectOk(await place.log.addEvent('note', both))
    expectOk(await bob.addEvent('note', { file: referenceTo(shared.sha256) }))
    const erased = expectOk(
      await place.api.request<{ deleted: { blobs: number } }>('DELETE', '/api/v1/user/alice'),
    )
    expect(erased.deleted.blobs).toBe(1)
    expect(await statusOf(place, own.sha256)).toBe(404)
    expect(await statusOf(place, shared.sha256)).toBe(200)
    expect(await rowsOf(place.project.id, 'blob_chunks')).toBe(1)
    expectOk(await place.api.request('DELETE', `/api/v1/session/${bob.id}`))
    for (const table of ['blobs', 'blob_chunks', 'blob_references'])
      expect(await rowsOf(place.project.id, table)).toBe(0)
  })

  it('leaves the blobs of forks, up to where they end', async () => {
    const place = await newPlace()
    const [early, late] = [await newBlob(place), await newBlob(place)]
    expectOk(await place.log.addEvent('note', { file: referenceTo(early.sha256) }))
    expectOk(await place.log.addEvent('note', { file: referenceTo(late.sha256) }))
    const path = `/api/v1/session/${place.log.id}`
    expectOk(await place.api.request('POST', `${path}/copy`, { body: { up_to_seq: 1 } }))
    expectOk(await place.api.request('DELETE', path))
    expect(await statusOf(place, early.sha256)).toBe(200)
    expect(await statusOf(place, late.sha256)).toBe(404)
  })

  it('with a project leaves nothing', async () => {
    const place = await newPlace()
    for (let count = 0; count < 20; count++) {
      const { sha256 } = await newBlob(place, 10)
      expectOk(await place.log.addEvent('note', { file: referenceTo(sha256) }))
    }
    const path = `/admin/v1/projects/${place.project.id}`
    expectOk(await service.adminClient().request('DELETE', path))
    for (const table of ['blobs', 'blob_chunks', 'blob_references'])
      expect(await rowsOf(place.project.id, table)).toBe(0)
  })
})
