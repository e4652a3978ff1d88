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
  const polled = { name: 'work', wait_ms: 30_000 }
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
