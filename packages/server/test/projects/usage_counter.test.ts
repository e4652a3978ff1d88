import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Database, SharedDatabase } from '../../../kits/src/postgres/database.ts'
import { UsageDirectory } from '../../src/projects/usage.ts'

/** A directory on a database in which a project has so many bytes; `onCount` is called while they are counted. */
function directoryOn(state: { bytes: number; onCount?: (() => void) | undefined }) {
  let counts = 0
  const query: Database['query'] = async ({ name }) => {
    if (name !== 'count_sessions') return [{ found: '0', blobs: '0', blob_bytes: '0', bytes: '0' }]
    counts += 1
    const { bytes } = state
    state.onCount?.()
    return [{ found: '1', entries: '1', bytes: String(bytes) }]
  }
  const usage = new UsageDirectory({ of: () => ({ query }) } as unknown as SharedDatabase)
  return { usage, reserve: (bytes: number) => usage.reserve('p', 'bytes', bytes, 100), counts: () => counts }
}

describe("a project's quota", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  it('counts what was stored once, as soon as that is known, in place of what was reserved', async () => {
    const { usage, reserve } = directoryOn({ bytes: 0 })
    const room = await reserve(60)
    await expect(reserve(60)).rejects.toThrow('max_bytes')
    usage.stored('p', { entries: 1, bytes: 50 }, room)
    // The answer is on its way, after which the caller settles what it reserved.
    await expect(reserve(51)).rejects.toThrow('max_bytes')
    const rest = await reserve(50)
    room.settle({})
    await expect(reserve(1)).rejects.toThrow('max_bytes')
    rest.settle({})
    expect(await reserve(50)).toBeDefined()
  })

  it('counts an append in doubt that turns out to be stored after its caller was answered', async () => {
    const { usage, reserve } = directoryOn({ bytes: 0 })
    const room = await reserve(60)
    room.settle({})
    usage.stored('p', { entries: 1, bytes: 60 }, room)
    await expect(reserve(41)).rejects.toThrow('max_bytes')
    expect(await reserve(40)).toBeDefined()
  })

  it('refuses nothing because of an append that was stored while it was counted', async () => {
    const state: Parameters<typeof directoryOn>[0] = { bytes: 0 }
    const { usage, reserve, counts } = directoryOn(state)
    await reserve(0)
    const room = await reserve(40)
    // Another process stored 20, so that the next request needs a count, which already has the 40.
    state.onCount = () => {
      state.onCount = undefined
      usage.stored('p', { entries: 1, bytes: 40 }, room)
    }
    state.bytes = 60
    vi.advanceTimersByTime(1_001)
    await expect(reserve(61)).rejects.toThrow('max_bytes')
    expect(counts()).toBe(2)
    vi.advanceTimersByTime(1)
    expect(await reserve(40)).toBeDefined()
    expect(counts()).toBe(3)
  })
})
