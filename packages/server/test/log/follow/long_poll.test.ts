import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { FastifyReply } from 'fastify'
import { expect, it } from 'vitest'
import { SILENT_BELL } from '../../../../kits/src/postgres/postgres_bell.ts'
import { Feed } from '../../../src/log/follow/feed.ts'
import { longPoll } from '../../../src/log/follow/long_poll.ts'
import type { UsageDirectory } from '../../../src/projects/usage.ts'

/** Somebody who waits for work, the attempts that are made for them, and when there is work. */
function waitForWork(raw: EventEmitter & { destroyed?: boolean }) {
  const database = { query: async () => [], transaction: () => Promise.reject(new Error('none')) }
  const feed = new Feed(database, SILENT_BELL, 60_000)
  const reply = { raw, request: { project_id: 'project', grant: { quotas: {} } } } as unknown as FastifyReply
  const state = { attempts: 0, has_work: false }
  const attempt = async () => {
    state.attempts += 1
    return state.has_work ? { answer: 'work' } : { answer: 'none', again_ms: null }
  }
  const polled = { name: 'work', wait_ms: 30_000, what: randomUUID() }
  const answered = longPoll({ feed, usage: {} as UsageDirectory }, reply, polled, attempt)
  return { feed, state, answered: answered.finally(() => feed.close()) }
}

it('who waits gets what comes', async () => {
  const { feed, state, answered } = waitForWork(new EventEmitter())
  await expect.poll(() => state.attempts).toBe(2)
  state.has_work = true
  feed.appended('project', new Set(['work']))
  expect(await answered).toBe('work')
})

it('nothing is taken for a client that leaves as it comes', async () => {
  const raw = new EventEmitter()
  const { state, answered } = waitForWork(raw)
  await expect.poll(() => state.attempts).toBe(2)
  state.has_work = true
  raw.emit('close')
  expect(await answered).toBe('none')
  expect(state.attempts).toBe(2)
})

it('nor for one that was gone before it waited', async () => {
  const { state, answered } = waitForWork(Object.assign(new EventEmitter(), { destroyed: true }))
  expect(await answered).toBe('none')
  expect(state.attempts).toBe(1)
})

it('what comes costs those who wait for the same a few tries, and not one for each, and nobody gets what a failed try was for', async () => {
  const database = { query: async () => [], transaction: () => Promise.reject(new Error('none')) }
  const feed = new Feed(database, SILENT_BELL, 60_000)
  let [attempts, work, is_away] = [0, 0, false]
  const attempt = async () => {
    attempts += 1
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (is_away) throw new Error('away')
    if (work === 0) return { answer: 'none', again_ms: null }
    work -= 1
    return { answer: 'work' }
  }
  const ends: Record<string, number> = {}
  const count = (end: string) => {
    ends[end] = (ends[end] ?? 0) + 1
  }
  const wait = () => {
    const raw = new EventEmitter()
    const reply = {
      raw,
      request: { project_id: 'project', grant: { quotas: {} } },
    } as unknown as FastifyReply
    const polled = { name: 'work', wait_ms: 60_000, what: 'project filter' }
    const answered = longPoll({ feed, usage: {} as UsageDirectory }, reply, polled, attempt)
    answered.then(count, (error: Error) => count(error.message))
    return raw
  }
  const clients = Array.from({ length: 200 }, wait)
  await expect.poll(() => feed.load().subscriptions).toBe(200)
  await quiet(() => attempts)
  const came = async (count: number) => {
    attempts = 0
    work += count
    feed.appended('project', new Set(['work']))
    await quiet(() => attempts)
    return attempts
  }
  expect(await came(1)).toBeLessThan(40)
  expect(ends).toEqual({ work: 1 })
  expect(await came(20)).toBeLessThan(60)
  expect(ends).toEqual({ work: 21 })
  // Nothing is tried for those who are gone.
  for (const raw of clients) raw.emit('close')
  await expect.poll(() => ends).toEqual({ work: 21, none: 179 })
  wait()
  await expect.poll(() => feed.load().subscriptions).toBe(1)
  is_away = true
  feed.appended('project', new Set(['work']))
  await expect.poll(() => ends).toEqual({ work: 21, none: 179, away: 1 })
  feed.close()
})

/** Until a number has stayed the same for a while. */
async function quiet(read: () => number): Promise<void> {
  let [before, since] = [read(), performance.now()]
  await expect
    .poll(() => {
      if (read() !== before) [before, since] = [read(), performance.now()]
      return performance.now() - since
    })
    .toBeGreaterThan(200)
}
