import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, it, vi } from 'vitest'
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
    // A process that gets no processor looks as busy as one that works.
    await vi.waitFor(() => expect(pauseAfter(10)).toBe(10), { timeout: 60_000, interval: 5 * MS })
  })
  it('that takes long each time rests many times as long, and goes on soon after it was slow once or failed', async () => {
    const end = new AbortController()
    const begun: number[] = []
    // How long each poll takes, in ms; a negative one fails.
    const polls = [MS, -MS, MS, 0, MS, MS, 0]
    const loop = new Loop({
      signal: end.signal,
      logger: pino({ enabled: false }),
      failure: 'it failed',
      poll_ms: 1,
      rest: 20,
      poll: async () => {
        const takes = polls[begun.push(performance.now()) - 1] ?? 0
        await sleep(Math.abs(takes))
        if (takes < 0) throw new Error('away')
      },
    })
    await expect.poll(() => begun.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(polls.length)
    end.abort()
    await loop.ended()
    const pauses = begun.slice(1, polls.length).map((at, index) => at - begun[index]!)
    const rested = pauses.map((pause) => pause > 20 * MS * 0.9)
    expect(rested).toEqual([false, false, false, false, false, true])
  })
})
