import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { Loop, pausesForRequests } from '../../src/lifecycle/background.ts'

const MS = 60

function keepLoopBusy(): void {
  const until = performance.now() + MS
  while (performance.now() < until);
}

describe('work in the background', () => {
  it('pauses four times as long as it took while the event loop is busy, and as long as it took otherwise', async () => {
    const pauseAfter = pausesForRequests()
    keepLoopBusy()
    expect(pauseAfter(10)).toBe(40)
    await sleep(5 * MS)
    expect(pauseAfter(10)).toBe(10)
  })
  it('that has to rest is begun again only after many times as long as it took', async () => {
    const end = new AbortController()
    const begun: number[] = []
    const loop = new Loop({
      signal: end.signal,
      logger: pino({ enabled: false }),
      failure: 'it failed',
      poll_ms: 1,
      rest: 20,
      poll: async () => {
        begun.push(performance.now())
        await sleep(20)
        if (begun.length === 2) throw new Error('away')
      },
    })
    await expect.poll(() => begun.length, { timeout: 10_000 }).toBe(3)
    end.abort()
    await loop.ended()
    const pauses = begun.slice(1).map((at, index) => at - begun[index]!)
    expect(Math.min(...pauses)).toBeGreaterThan(20 * 20)
  })
})
