import { afterAll, vi } from 'vitest'

// Test files share a process and what they import (see vitest.config.ts), so a clock that one of them faked would stand
// still in all that follow: their tests would wait for ever, and nothing would say for whom. This is executed
// again for every file. A hook at the top of a module that several files import is not: it belongs to the first alone.
const performanceNow = performance.now
afterAll(() => {
  const faked = vi.isFakeTimers() || performance.now !== performanceNow
  vi.useRealTimers()
  if (faked) throw new Error('This test file ends with a faked clock: vi.useRealTimers() in its afterEach')
})
