import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { AssetUrls } from '../../src/blobs/asset_urls.ts'

const database = (secret: string) => ({ query: async () => [{ secret }] })
const ours = new AssetUrls(database('a'))
const asset = {
  project_id: '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d',
  owner_id: '01931b0e-7d3c-7a52-9d3f-000000000001',
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a signed URL', () => {
  it('is opened by whoever has the secret, for five minutes', async () => {
    vi.useFakeTimers({ now: new Date('2026-01-01T00:00:00.900Z') })
    const { token, expire_at } = await ours.sign(asset)
    expect(expire_at).toBe('2026-01-01T00:05:00.000000Z')
    const other = new AssetUrls(database('a'))
    vi.setSystemTime('2026-01-01T00:04:59.999Z')
    expect(await other.open(token)).toEqual(asset)
    vi.setSystemTime('2026-01-01T00:05:00Z')
    const expired = await other.open(token).catch((error) => error)
    expect(expired).toMatchObject({ error: 'unauthorized' })
    expect(await other.open('x').catch((error) => error)).toEqual(expired)
  })

  it('is refused with any change, and with another secret', async () => {
    const { token } = await ours.sign(asset)
    await expect(new AssetUrls(database('b')).open(token)).rejects.toThrow('not valid')
    const character = fc.constantFrom(...'ABCxyz019-_=/+ \0é')
    await fc.assert(
      fc.asyncProperty(fc.nat(token.length), fc.nat(2), character, async (at, removed, added) => {
        const changed = token.slice(0, at) + added + token.slice(at + removed)
        fc.pre(changed !== token)
        await expect(ours.open(changed)).rejects.toThrow('not valid')
      }),
    )
  })

  it('asks for the secret again after the database was away', async () => {
    const query = vi
      .fn()
      .mockRejectedValueOnce(new Error('away'))
      .mockResolvedValue([{ secret: 'a' }])
    const urls = new AssetUrls({ query })
    await expect(urls.sign(asset)).rejects.toThrow('away')
    expect(await ours.open((await urls.sign(asset)).token)).toEqual(asset)
    await urls.sign(asset)
    expect(query).toHaveBeenCalledTimes(2)
  })
})
