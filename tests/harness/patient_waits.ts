import { setTimeout as sleep } from 'node:timers/promises'
import { vi } from 'vitest'
import { LEASE_MS } from './lease.ts'

const PAUSE_MS_MIN = 20
const PAUSE_MS_MAX = 300
const PAUSE_GROWTH = 1.5

const { waitFor } = vi

/**
 * Asks less and less often. To ask a service whether it is done takes milliseconds of three processes, and half the tests
 * that run at a time wait for something: at a constant pace, asking kept a processor busy.
 */
vi.waitFor = async function waitPatiently(check, options = {}) {
  const { timeout = 1_000, ...more } = typeof options === 'number' ? { timeout: options } : options
  const given = { ...more, timeout: timeout + LEASE_MS }
  if (given.interval !== undefined) return waitFor(check, given)
  let pause_ms = PAUSE_MS_MIN
  const ask = async () => {
    try {
      return await check()
    } catch (error) {
      await sleep(pause_ms)
      pause_ms = Math.min(pause_ms * PAUSE_GROWTH, PAUSE_MS_MAX)
      throw error
    }
  }
  return waitFor(ask, { ...given, interval: 1 })
}
