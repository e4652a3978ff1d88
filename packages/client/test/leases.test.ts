import { Annals } from '@annals/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { broken, ok, scriptedFetch } from './scripted_fetch.ts'

const HOUR_MS = 3_600_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('renews a lease in time, and holds it, however the clock of its machine jumps', async () => {
  const answer = async () => ok({ fence: 7, owner: 'a', expires_at: '2026-11-26T10:00:30Z' })
  // Each renewal needs a second attempt, for which its time must last.
  const renewals = Array.from({ length: 3 }, () => [broken(), answer]).flat()
  const { fetch, sent } = scriptedFetch(answer, ...renewals, answer)
  const annals = new Annals({ url: 'http://annals.test', token: 'sk', fetch })
  await annals.runs.withLease('s', { owner: 'a', ttl_ms: 30_000 }, async ({ signal }) => {
    for (const jump_ms of [HOUR_MS, -2 * HOUR_MS, 24 * HOUR_MS]) {
      vi.setSystemTime(Date.now() + jump_ms)
      await vi.advanceTimersByTimeAsync(10_500)
      expect(signal.aborted).toBe(false)
    }
  })
  expect(sent.map(({ method }) => method)).toEqual(['POST', ...Array(6).fill('PUT'), 'DELETE'])
})
