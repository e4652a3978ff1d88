import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { bytesOf, newBytes, sha256Of } from '../harness/blobs.ts'
import { type CuttingProxy, cuttingProxy } from '../harness/cutting_proxy.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let proxy: CuttingProxy
let annals: Annals

beforeAll(async () => {
  const { token } = await service.newProject()
  proxy = await cuttingProxy(service.node.url)
  annals = new Annals({ url: proxy.url, token })
})
afterAll(() => proxy.close())

const part = (type: string, file_field: string) => ({ type, file_field })
const message = (...parts: object[]) => ({
  format: 'acontext' as const,
  blob: { role: 'user', parts: [{ type: 'text', text: 'Grüße' }, ...parts] },
  meta: { n: 1 },
})

describe('the client’s messages with files', () => {
  it('have them as attachments, which come back in every format and have URLs that need no key', async () => {
    const [pdf, png] = [newBytes(600_000), newBytes(1_000)]
    const { id } = await annals.sessions.create()
    const report = new File([new Uint8Array(pdf)], 'Bericht ü.pdf', { type: 'application/pdf' })
    const files = { doc: report, photo: new Blob([new Uint8Array(png)], { type: 'image/png' }) }
    const sent = message(part('file', 'doc'), part('image', 'photo'))
    const stored = await annals.sessions.appendMessage(id, sent, { files, if_match: 0 })
    expect(stored).toMatchObject({ seq: 1, role: 'user', meta: { n: 1 } })
    const query = { format: 'acontext', with_asset_public_url: true } as const
    const { items, public_urls } = await annals.sessions.messages(id, query).page()
    expect(items).toMatchObject([{ parts: [{ text: 'Grüße' }, { filename: 'Bericht ü.pdf' }, {}] }])
    for (const bytes of [pdf, png]) {
      expect((await annals.blobs.get(sha256Of(bytes))).length).toBe(bytes.length)
      const { url } = public_urls![sha256Of(bytes)]!
      expect((await bytesOf(await fetch(url))).equals(bytes)).toBe(true)
    }
    const [shown] = (await annals.sessions.messages(id, { format: 'anthropic' }).page()).items
    expect(JSON.stringify(shown).includes(pdf.toString('base64'))).toBe(true)
  })

  it('are stored once, though the answer is lost', async () => {
    const { id } = await annals.sessions.create()
    proxy.script.push('lose_answer', 'cut_answer')
    const files = { doc: new Blob([new Uint8Array(newBytes(40_000))]) }
    const { seq } = await annals.sessions.appendMessage(id, message(part('file', 'doc')), { files })
    expect(seq).toBe(1)
    expect((await annals.sessions.timeline(id).page()).items).toHaveLength(1)
  })

  it('are refused as a whole where a part names no file', async () => {
    const { id } = await annals.sessions.create()
    const refused = annals.sessions.appendMessage(id, message(part('file', 'doc')), {
      files: { other: new Blob(['a']) },
    })
    await expect(refused).rejects.toMatchObject({ status: 400, error: 'invalid_request' })
    expect((await annals.sessions.timeline(id).page()).items).toEqual([])
  })
})
