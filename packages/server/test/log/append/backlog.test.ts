import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Row } from '../../../../kits/src/postgres/database.ts'
import type { AppendRequest } from '../../../src/log/append/append_request.ts'
import { Appender, type AppenderOptions } from '../../../src/log/append/appender.ts'
import { FLUSH_BYTES_MAX } from '../../../src/log/append/lane.ts'
import { FakeDatabase, type Flush } from './fake_database.ts'
import { anEvent } from './requests.ts'

const appenders: Appender[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const appender of appenders.splice(0)) appender.close()
})

/** An appender on a database that answers when it is told to. */
function heldAppender(options: Partial<AppenderOptions>) {
  const held: Array<() => void> = []
  const hold = (flush: Flush) => new Promise<Row[]>((resolve) => held.push(() => resolve(flush.rows)))
  const database = new FakeDatabase(hold)
  const limits = {
    queue_requests_max: 1_000,
    queue_bytes_max: 1_000_000_000,
    flushes_max: 4,
    wait_ms_max: 60_000,
  }
  const appender = new Appender({ database: { of: () => database }, ...limits, ...options })
  appenders.push(appender)
  const answerAll = () => {
    for (const answer of held.splice(0)) answer()
  }
  return { appender, answerAll }
}

/** How an append ended: `stored`, or the name of its error; undefined while it waits. */
function send(appender: Appender, project_id: string, bytes = 10): { how?: string } {
  const request: AppendRequest = anEvent({ project_id })
  const sized = { ...request, entries: request.entries.map((entry) => ({ ...entry, bytes })) }
  const state: { how?: string } = {}
  appender.append(sized).then(
    () => Object.assign(state, { how: 'stored' }),
    (error: { error?: string }) => Object.assign(state, { how: error.error }),
  )
  return state
}

const hows = (sent: Array<{ how?: string }>) => sent.map(({ how }) => how ?? 'waits')
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a full queue', () => {
  it('takes a quiet project in, and gives up the newest of the one that fills it', async () => {
    const { appender, answerAll } = heldAppender({ queue_requests_max: 4 })
    const busy = Array.from({ length: 6 }, () => send(appender, 'busy'))
    await settled()
    expect(hows(busy)).toEqual(['waits', 'waits', 'waits', 'waits', 'waits', 'overloaded'])
    // The quiet one's first needs no place in the queue, as a flush is free for it.
    const quiet = Array.from({ length: 4 }, () => send(appender, 'quiet'))
    await settled()
    expect(hows(busy)).toEqual(['waits', 'waits', 'waits', 'overloaded', 'overloaded', 'overloaded'])
    expect(hows(quiet)).toEqual(['waits', 'waits', 'waits', 'overloaded'])
    await vi.waitFor(() => {
      answerAll()
      expect(hows([...busy, ...quiet])).not.toContain('waits')
    })
    expect(hows(busy)).toEqual(['stored', 'stored', 'stored', 'overloaded', 'overloaded', 'overloaded'])
  })

  it('does the same by bytes, and throws nobody out for what can never fit', async () => {
    const { appender } = heldAppender({ queue_bytes_max: 100 })
    const busy = Array.from({ length: 4 }, () => send(appender, 'busy', 33))
    await settled()
    expect(hows(busy)).toEqual(['waits', 'waits', 'waits', 'waits'])
    send(appender, 'quiet', 10)
    const large = send(appender, 'large', 101)
    const second = send(appender, 'quiet', 30)
    await settled()
    expect([large.how, second.how]).toEqual(['overloaded', undefined])
    expect(hows(busy)).toEqual(['waits', 'waits', 'waits', 'overloaded'])
  })
})

describe('a project that is behind', () => {
  const half = FLUSH_BYTES_MAX / 2

  it('is refused more than is stored in time, by what full flushes took of late', async () => {
    const { appender, answerAll } = heldAppender({ queue_wait_ms_max: 20 })
    const first = Array.from({ length: 4 }, () => send(appender, 'busy', half))
    await new Promise((resolve) => setTimeout(resolve, 50))
    answerAll()
    // Full enough, all of them; now it is known that a full flush takes 50 ms.
    await vi.waitFor(() => expect(first[0]!.how).toBe('stored'))
    expect(appender.isBehind('busy')).toBe(false)
    // Two go beside the one in flight, two wait.
    const more = Array.from({ length: 6 }, () => send(appender, 'busy', half))
    await settled()
    expect(hows(more)).toEqual([...Array(4).fill('waits'), 'overloaded', 'overloaded'])
    expect([appender.isBehind('busy'), appender.isBehind('quiet')]).toEqual([true, false])
    await vi.waitFor(() => {
      answerAll()
      expect(new Set(hows(more.slice(0, 4)))).toEqual(new Set(['stored']))
    })
    expect(appender.isBehind('busy')).toBe(false)
  })

  it('is not so for one slow flush: what the next takes whole may wait', async () => {
    const { appender, answerAll } = heldAppender({ queue_wait_ms_max: 20 })
    const first = send(appender, 'busy')
    await new Promise((resolve) => setTimeout(resolve, 50))
    answerAll()
    await vi.waitFor(() => expect(first.how).toBe('stored'))
    const more = Array.from({ length: 400 }, () => send(appender, 'busy'))
    await settled()
    expect(new Set(hows(more))).toEqual(new Set(['waits']))
  })
})

describe('more projects than have their turn in time', () => {
  it('are refused beyond that, those that are quiet otherwise as well, and taken again when turns are quick', async () => {
    const { appender, answerAll } = heldAppender({ queue_wait_ms_max: 20, flushes_max: 1 })
    const first = send(appender, 'project 0')
    await new Promise((resolve) => setTimeout(resolve, 100))
    answerAll()
    await vi.waitFor(() => expect(first.how).toBe('stored'))
    // A flush is known to take 30 ms or more now: one has its turn, one waits for it, and one more would for too long.
    const many = [1, 2, 3, 4].map((n) => send(appender, `project ${n}`))
    await settled()
    expect(hows(many)).toEqual(['waits', 'waits', 'overloaded', 'overloaded'])
    expect(appender.isBehind('project 5')).toBe(true)
    await vi.waitFor(() => {
      answerAll()
      expect(hows(many.slice(0, 2))).toEqual(['stored', 'stored'])
    })
    expect(appender.isBehind('project 5')).toBe(false)
  })

  it('are not refused because every commit stood still for a moment', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { appender, answerAll } = heldAppender({ queue_wait_ms_max: 250, flushes_max: 4 })
    const send64 = () => Array.from({ length: 64 }, (_, n) => send(appender, `project ${n}`))
    const first = send64()
    vi.advanceTimersByTime(60)
    while (hows(first).includes('waits')) {
      answerAll()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const again = send64()
    await settled()
    expect(new Set(hows(again))).toEqual(new Set(['waits']))
  })

  it.each([
    ['a single server', false],
    ['a cluster', true],
  ])(
    'are not refused on %s because a few flushes took seconds, but if all are slow',
    async (_where, distributed) => {
      vi.useFakeTimers({ toFake: ['performance'] })
      const { appender, answerAll } = heldAppender({
        queue_wait_ms_max: 250,
        machineOf: distributed ? (project) => project : undefined,
      })
      const sendAll = (count: number) =>
        Array.from({ length: count }, (_, n) => send(appender, `project ${n}`))
      const storeIn = async (ms: number, sent: Array<{ how?: string }>) => {
        while (hows(sent).includes('waits')) {
          vi.advanceTimersByTime(ms)
          answerAll()
          await settled()
        }
      }
      await storeIn(5_000, sendAll(4))
      const quick = sendAll(28)
      await settled()
      expect(new Set(hows(quick))).toEqual(new Set(['waits']))
      await storeIn(500, quick)
      const slow = sendAll(28)
      await settled()
      expect(hows(slow)).toContain('overloaded')
    },
  )
})
