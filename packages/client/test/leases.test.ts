import { Annals } from '@annals/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { broken, ok, refused, scriptedFetch, silence } from './scripted_fetch.ts'

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

const held = async () => ok({ fence: 7, owner: 'a', expires_at: '2026-11-26T10:00:30Z' })
const away = async () => refused(503, 'unavailable')

it('keeps a lease though two renewals get no answer, which are given up in time for a third', async () => {
  const { fetch, sent } = scriptedFetch(held, silence, silence, held, held)
  const annals = new Annals({ url: 'http://annals.test', token: 'sk', fetch })
  await annals.runs.withLease('s', { owner: 'a', ttl_ms: 60_000 }, async ({ signal }) => {
    await vi.advanceTimersByTimeAsync(65_000)
    expect(signal.aborted).toBe(false)
  })
  expect(sent.map(({ method }) => method)).toEqual(['POST', 'PUT', 'PUT', 'PUT', 'DELETE'])
})

it('tells that a lease is lost when its time is over, whenever the next renewal would be', async () => {
  const { fetch } = scriptedFetch(held, ...Array(99).fill(away))
  const annals = new Annals({ url: 'http://annals.test', token: 'sk', fetch })
  const work = annals.runs.withLease('s', { owner: 'a', ttl_ms: 30_000 }, async ({ signal }) => {
    const began = Date.now()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return Date.now() - began
  })
  await vi.advanceTimersByTimeAsync(60_000)
  const lost_after_ms = await work
  expect(lost_after_ms).toBeGreaterThan(25_000)
  expect(lost_after_ms).toBeLessThanOrEqual(30_001)
})

it('returns what was done at the latest when the lease would be over, if the service is away by then', async () => {
  const { fetch } = scriptedFetch(held, silence)
  const annals = new Annals({ url: 'http://annals.test', token: 'sk', fetch })
  const done = annals.runs.withLease('s', { owner: 'a', ttl_ms: 2_000 }, async () => 'done')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(await Promise.race([done, Promise.resolve('waits')])).toBe('done')
})
