import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, it, vi } from 'vitest'
import { Heartbeat } from '../../../../kits/src/http/answer/heartbeat.ts'
import { SILENT_BELL } from '../../../../kits/src/postgres/postgres_bell.ts'
import { Feed } from '../../../src/log/follow/feed.ts'

const TAILS = 1_000
/** Each costs the event loop some microseconds, and an append or a heartbeat would hold it for all of them. */
const TAILS_A_TURN_MAX = TAILS / 5

afterEach(() => {
  vi.useRealTimers()
})

/** How much was done in each turn of the event loop until nothing more is. */
async function inEachTurn(done: () => number): Promise<number[]> {
  const turns: number[] = []
  for (let seen = 0, idle = 0; idle < 3; ) {
    await turn()
    const now = done()
    if (now === seen) idle += 1
    else turns.push(now - seen)
    seen = now
  }
  return turns
}

const sum = (counts: number[]) => counts.reduce((all, count) => all + count, 0)

it('an append wakes the tails of its session a few in each turn of the event loop', async () => {
  const database = { query: async () => [], transaction: () => Promise.reject(new Error('none')) }
  const feed = new Feed(database, SILENT_BELL, 60_000)
  let woken = 0
  const subscriptions = Array.from({ length: TAILS }, () => feed.subscribe('project', 'session', 0))
  for (const subscription of subscriptions) void subscription.changed().then(() => woken++)
  feed.appended('project', new Set(['session']))
  const turns = await inEachTurn(() => woken)
  expect(sum(turns)).toBe(TAILS)
  expect(Math.max(...turns)).toBeLessThan(TAILS_A_TURN_MAX)
  feed.close()
})

it('so does a poll that finds entries in thousands of sessions', async () => {
  const heads = Array.from({ length: TAILS }, (_, n) => ({ session_id: `session ${n}`, last_seq: '7' }))
  const database = { query: async () => heads, transaction: () => Promise.reject(new Error('none')) }
  let heard = () => {}
  const onHeard = (listener: () => void) => {
    heard = listener
  }
  const feed = new Feed(database, { ...SILENT_BELL, onHeard }, 60_000)
  let woken = 0
  for (const { session_id } of heads)
    void feed
      .subscribe('project', session_id, 0)
      .changed()
      .then(() => woken++)
  heard()
  const turns = await inEachTurn(() => woken)
  expect(sum(turns)).toBe(TAILS)
  expect(Math.max(...turns)).toBeLessThan(TAILS_A_TURN_MAX)
  feed.close()
})

it('a heartbeat goes through the open streams a few in each turn, and leaves out those that have ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const heartbeat = new Heartbeat()
  let checked = 0
  const check = async () => {
    checked += 1
  }
  const stops = Array.from({ length: TAILS }, () => heartbeat.add({ beat: () => {}, check }))
  vi.advanceTimersByTime(2_000)
  for (const stop of stops.slice(TAILS / 2)) stop()
  const turns = await inEachTurn(() => checked)
  expect(sum(turns)).toBe(TAILS / 2)
  expect(Math.max(...turns)).toBeLessThan(TAILS_A_TURN_MAX)
  heartbeat.close()
})
