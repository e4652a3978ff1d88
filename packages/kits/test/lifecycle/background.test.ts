import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { pausesForRequests } from '../../src/lifecycle/background.ts'

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
})
