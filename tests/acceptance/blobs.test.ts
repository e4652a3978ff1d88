import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import {
  blobUrl,
  bytesOf,
  CHUNK_BYTES,
  errorOf,
  getBlob,
  newBytes,
  putBlob,
  sha256Of,
} from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const SOON = { timeout: 20_000 }

const service = useSharedService()
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

const put = (bytes: Buffer, sha256?: string, headers?: Record<string, string>) =>
  putBlob(service.node.url, project.token, bytes, sha256, headers)
const get = (sha256: string, options?: Parameters<typeof getBlob>[3]) =>
  getBlob(service.secondNode.url, project.token, sha256, options)

/** Chunks that the project has of a blob or of uploads that did not end. */
async function chunksOf(project_id: string): Promise<number> {
  const [row] = await queryRows<{ chunks: string }>(
    service.databaseUrl,
    'SELECT count(*) AS chunks FROM blob_chunks WHERE project_id = $1',
    [project_id],
  )
  return Number(row!.chunks)
}

describe('PUT /blobs/{sha256}', () => {
  it.each([0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7])(
    'stores %d bytes, which another node gives back as they are',
    async (length) => {
      const bytes = newBytes(length)
      const sha256 = sha256Of(bytes)
      const stored = await put(bytes)
      expect(stored.status).toBe(201)
      expect(await stored.json()).toEqual({ code: 0, error: '', msg: 'ok', data: { sha256, bytes: length } })
      const read = await get(sha256)
      expect(read.status).toBe(200)
      expect(read.headers.get('x-content-type-options')).toBe('nosniff')
      expect(read.headers.get('content-disposition')).toMatch(/^attachment\b/)
      expect((await bytesOf(read)).equals(bytes)).toBe(true)
    },
  )

  it('answers 200 for what the project has, also where two send it at once', async () => {
    const bytes = newBytes(2 * CHUNK_BYTES + 5)
    const both = await Promise.all([put(bytes), putBlob(service.secondNode.url, project.token, bytes)])
    const statuses = both.map(({ status }) => status)
    expect(statuses).toContain(201)
    expect([200, 201]).toContain(Math.min(...statuses))
    expect((await put(bytes)).status).toBe(200)
    expect((await bytesOf(await get(sha256Of(bytes)))).equals(bytes)).toBe(true)
    const [row] = await queryRows<{ n: string }>(
      service.databaseUrl,
      'SELECT count(*) AS n FROM blobs WHERE project_id = $1 AND (sha256 = $2 OR sha256 IS NULL)',
      [project.id, sha256Of(bytes)],
    )
    expect(row!.n).toBe('1')
  })

  it('refuses bytes with another hash and keeps none of them', async () => {
    const other = await service.newProject()
    const bytes = newBytes(2 * CHUNK_BYTES + 1)
    const sha256 = sha256Of(newBytes(20))
    const refused = await errorOf(await putBlob(service.node.url, other.token, bytes, sha256))
    expect(refused).toMatchObject({ status: 400, error: 'invalid_request' })
    expect(refused.msg).toContain(sha256Of(bytes))
    expect((await getBlob(service.node.url, other.token, sha256)).status).toBe(404)
    expect(await chunksOf(other.id)).toBe(0)
  })

  it('refuses what is not a hash, another encoding, and more than a blob may have', async () => {
    expect(await errorOf(await put(newBytes(1), 'A'.repeat(64)))).toMatchObject({ status: 400 })
    const encoded = await put(newBytes(100), undefined, { 'Content-Encoding': 'gzip' })
    expect(await errorOf(encoded)).toMatchObject({ status: 415, error: 'unsupported_media_type' })
    const large = await put(Buffer.alloc(26_214_401), sha256Of(newBytes(20)))
    expect(await errorOf(large)).toMatchObject({ status: 413, error: 'payload_too_large' })
  })

  it('takes a body without a length, and refuses it at the limit', async () => {
    const send = (body: Iterable<Buffer>, sha256: string) =>
      fetch(blobUrl(service.node.url, sha256), {
        method: 'PUT',
        headers: { Authorization: `Bearer ${project.token}` },
        body: Readable.toWeb(Readable.from(body)),
        duplex: 'half',
      } as unknown as RequestInit)
    const pieces = Array.from({ length: 9 }, () => newBytes(50_000))
    expect((await send(pieces, sha256Of(Buffer.concat(pieces)))).status).toBe(201)
    const tooMany = Array.from({ length: 27 }, () => Buffer.alloc(1_048_576))
    const refused = await send(tooMany, sha256Of(newBytes(20)))
    expect(await errorOf(refused)).toMatchObject({ status: 413, error: 'payload_too_large' })
  })

  it('keeps nothing of a body that breaks off', async () => {
    const other = await service.newProject()
    const { hostname, port } = new URL(service.node.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    const head = `PUT /api/v1/blobs/${'0'.repeat(64)} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${other.token}\r\nContent-Length: 9000000\r\n\r\n`
    socket.write(head)
    socket.write(newBytes(3 * CHUNK_BYTES))
    await vi.waitFor(async () => expect(await chunksOf(other.id)).toBeGreaterThan(0), SOON)
    socket.destroy()
    await vi.waitFor(async () => expect(await chunksOf(other.id)).toBe(0), SOON)
  })

  it('takes the bytes from each project: what another one has looks unknown', async () => {
    const bytes = newBytes(1_000)
    const sha256 = sha256Of(bytes)
    expect((await put(bytes)).status).toBe(201)
    const other = await service.newProject()
    expect((await getBlob(service.node.url, other.token, sha256)).status).toBe(404)
    const guessed = await putBlob(service.node.url, other.token, newBytes(1_000), sha256)
    expect(await errorOf(guessed)).toMatchObject({ status: 400, error: 'invalid_request' })
    expect((await putBlob(service.node.url, other.token, bytes)).status).toBe(201)
  })
})

describe('GET and HEAD /blobs/{sha256}', () => {
  const bytes = newBytes(2 * CHUNK_BYTES + 100)
  const sha256 = sha256Of(bytes)

  beforeAll(async () => {
    await put(bytes)
  })

  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=10-', 10, bytes.length],
    ['bytes=-7', bytes.length - 7, bytes.length],
    ['bytes=-999999999', 0, bytes.length],
    [`bytes=${CHUNK_BYTES - 1}-${CHUNK_BYTES}`, CHUNK_BYTES - 1, CHUNK_BYTES + 1],
    [`bytes=5-${10 * bytes.length}`, 5, bytes.length],
  ])('answers %s with these bytes', async (range, from, to) => {
    const answer = await get(sha256, { headers: { Range: range } })
    expect(answer.status).toBe(206)
    expect(answer.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/${bytes.length}`)
    expect((await bytesOf(answer)).equals(bytes.subarray(from, to))).toBe(true)
  })

  it('answers a range only to who resumes these bytes, where If-Range says of which', async () => {
    for (const [tag, status] of [
      [`"${sha256}"`, 206],
      ['"other"', 200],
      ['Wed, 21 Oct 2026 07:28:00 GMT', 200],
    ] as const)
      expect((await get(sha256, { headers: { Range: 'bytes=0-1', 'If-Range': tag } })).status).toBe(status)
  })

  it.each(['bytes=5-4', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=a-b'])('ignores %s', async (range) => {
    const answer = await get(sha256, { headers: { Range: range } })
    expect(answer.status).toBe(200)
    expect((await bytesOf(answer)).equals(bytes)).toBe(true)
  })

  it.each([`bytes=${bytes.length}-`, 'bytes=-0'])(
    'refuses %s, which begins behind the end',
    async (range) => {
      const answer = await get(sha256, { headers: { Range: range } })
      expect(answer.headers.get('content-range')).toBe(`bytes */${bytes.length}`)
      expect(await errorOf(answer)).toMatchObject({ status: 416, error: 'range_not_satisfiable' })
    },
  )

  it('tells the length without the bytes', async () => {
    const answer = await get(sha256, { method: 'HEAD' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-length')).toBe(String(bytes.length))
    expect(answer.headers.get('accept-ranges')).toBe('bytes')
    expect((await get(sha256Of(newBytes(20)), { method: 'HEAD' })).status).toBe(404)
  })
})

describe('the quota of bytes of blobs', () => {
  it('refuses what exceeds it, before the bytes are sent, and shows what is used', async () => {
    const own = await service.newProject()
    const quota = { body: { max_blob_bytes: 10_000 } }
    expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${own.id}`, quota))
    const api = await service.newClient({ token: own.token })
    expect((await putBlob(service.node.url, own.token, newBytes(6_000))).status).toBe(201)
    await vi.waitFor(async () => {
      const refused = await errorOf(await putBlob(service.node.url, own.token, newBytes(6_000)))
      expect(refused).toMatchObject({ status: 403, error: 'quota_exceeded' })
      expect(refused.msg).toContain('max_blob_bytes')
      const usage = expectOk(await api.request<Record<string, unknown>>('GET', '/api/v1/usage'))
      expect(usage).toMatchObject({ blobs: { used: 1 }, blob_bytes: { used: 6_000, max: 10_000 } })
    }, SOON)
  })
})
