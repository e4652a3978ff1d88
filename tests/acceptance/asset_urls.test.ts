import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { bytesOf, errorOf, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

interface Shown {
  items: Array<{ parts: Array<{ asset: unknown; meta: { data: string } }> }>
  public_urls?: Record<string, { url: string; expire_at: string }>
}

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

/** A session with a message that refers to a blob, and one with base64. */
async function newAssets(length = 300_000) {
  const log = await newSessionLog(api)
  const [sent, inline] = [newBytes(length), newBytes(50_000)]
  await putBlob(service.node.url, project.token, sent)
  const reference = { annals_blob: sha256Of(sent), media_type: 'text/html' }
  const parts = [
    { type: 'file', meta: { data: reference, media_type: 'text/html' } },
    { type: 'text', text: 'a' },
  ]
  expectOk(await log.add({ role: 'user', parts }, { format: 'acontext' }), 201)
  const url = `data:image/png;base64,${inline.toString('base64')}`
  const content = [{ type: 'image_url', image_url: { url } }]
  expectOk(await log.add({ role: 'user', content }), 201)
  return { log, sent, inline }
}

async function shownOf(log: SessionLog, query: Record<string, string> = {}): Promise<Shown> {
  const asked = { with_asset_public_url: 'true', format: 'acontext', ...query }
  return expectOk(
    await api.request<Shown>('GET', `/api/v1/session/${log.id}/messages?${new URLSearchParams(asked)}`),
  )
}

const elsewhere = (url: string) => url.replace(service.node.url, service.secondNode.url)

describe('GET /session/{id}/messages?with_asset_public_url=true', () => {
  it('returns a URL for each blob of the page, which another node opens without a key', async () => {
    const { log, sent, inline } = await newAssets()
    const { items, public_urls } = await shownOf(log)
    expect(Object.keys(public_urls!)).toEqual([sha256Of(sent), sha256Of(inline)])
    for (const [index, [bytes, mime]] of [
      [sent, 'text/html'] as const,
      [inline, 'image/png'] as const,
    ].entries()) {
      const sha256 = sha256Of(bytes)
      expect(items[index]!.parts[0]!.asset).toEqual({
        bucket: '',
        s3_key: sha256,
        etag: sha256,
        sha256,
        mime,
        size_b: bytes.length,
      })
      const { url, expire_at } = public_urls![sha256]!
      expect(Math.abs(Date.parse(expire_at) - Date.now() - 300_000)).toBeLessThan(60_000)
      const answer = await fetch(elsewhere(url))
      expect(answer.status).toBe(200)
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': 'application/octet-stream',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'content-disposition': expect.stringMatching(/^attachment/),
        'cache-control': 'no-store',
      })
      expect((await bytesOf(answer)).equals(bytes)).toBe(true)
    }
    const { url } = public_urls![sha256Of(sent)]!
    const some = await fetch(url, { headers: { Range: 'bytes=10-19' } })
    expect(some.status).toBe(206)
    expect((await bytesOf(some)).equals(sent.subarray(10, 20))).toBe(true)
    expect((await fetch(url, { method: 'HEAD' })).headers.get('content-length')).toBe(String(sent.length))
    expect((await fetch(url, { method: 'POST' })).status).toBe(405)
  })

  it('returns those of its own page in every format, and none unless asked', async () => {
    const { log, sent, inline } = await newAssets()
    for (const format of ['openai', 'anthropic', 'gemini', 'responses'])
      expect(Object.keys((await shownOf(log, { format, limit: '1' })).public_urls!)).toEqual([sha256Of(sent)])
    const last = await shownOf(log, { limit: '1', time_desc: 'true' })
    expect(Object.keys(last.public_urls!)).toEqual([sha256Of(inline)])
    expect(await shownOf(log, { with_asset_public_url: 'false' })).not.toHaveProperty('public_urls')
    expect((await shownOf(await newSessionLog(api))).public_urls).toEqual({})
  })

  it('takes nothing that a caller writes for a mark of a size', async () => {
    const log = await newSessionLog(api)
    const text = `\\u0000n${'0'.repeat(64)}`
    const blob = { role: 'user', parts: [{ type: 'text', text }] }
    expectOk(await log.add(blob, { format: 'acontext' }), 201)
    expect((await shownOf(log)).items[0]!.parts[0]).toEqual({ type: 'text', text })
  })
})

describe('a signed URL', () => {
  it('is refused with one answer when it was changed, whatever it names', async () => {
    const { log, sent } = await newAssets(10)
    const { url } = (await shownOf(log)).public_urls![sha256Of(sent)]!
    const changed = [`${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`, `${url}A`, url.slice(0, -40)]
    const at = url.lastIndexOf('/') + 1
    const swapped = `${url.slice(0, at)}${url[at] === 'A' ? 'B' : 'A'}${url.slice(at + 1)}`
    const answers = await Promise.all(
      [...changed, swapped].map(async (one) => {
        const answer = await fetch(one)
        expect(answer.headers.get('content-security-policy')).toBeNull()
        return errorOf(answer)
      }),
    )
    expect(answers[0]).toMatchObject({ status: 401, error: 'unauthorized' })
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  it('returns nothing any more once its session is deleted', async () => {
    const { log, sent } = await newAssets()
    const { url } = (await shownOf(log)).public_urls![sha256Of(sent)]!
    expect((await fetch(url)).status).toBe(200)
    expectOk(await api.request('DELETE', `/api/v1/session/${log.id}`))
    const gone = await Promise.all([fetch(url), fetch(elsewhere(url))])
    for (const answer of gone)
      expect(await errorOf(answer)).toMatchObject({ status: 404, error: 'blob_not_found' })
  })

  it('is asked for by those alone who may read', async () => {
    const { log } = await newAssets(10)
    const stranger = await service.newClient()
    const path = `/api/v1/session/${log.id}/messages?with_asset_public_url=true`
    expectError(await stranger.request('GET', path), 404, 'session_not_found')
  })
})
