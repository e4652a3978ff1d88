import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { FLUSH_ENTRIES_MAX } from '../../../src/log/append/lane.ts'
import { appenderOn, ending, pausedDatabase } from './appender_setup.ts'
import { FakeDatabase } from './fake_database.ts'
import { anEvent } from './requests.ts'

describe('group commit', () => {
  it('sends the first append at once and those that arrive meanwhile together in the next flush', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database)
    const first = ending(appender, anEvent())
    const others = Array.from({ length: 20 }, () => ending(appender, anEvent()))
    expect(database.flushes.map((flush) => flush.session_ids.length)).toEqual([1])
    answerNext()
    expect(await first).toBe('stored')
    await vi.waitFor(() => expect(database.flushes.map((flush) => flush.session_ids.length)).toEqual([1, 20]))
    answerNext()
    expect(new Set(await Promise.all(others))).toEqual(new Set(['stored']))
  })

  describe('that may gather', () => {
    /** A flush of ten is answered, while more requests wait. */
    async function afterTen(gather_ms_max: number | undefined, waiting = 1) {
      const { database, answerNext } = pausedDatabase()
      const appender = appenderOn(database, { ...(gather_ms_max !== undefined && { gather_ms_max }) })
      const sizes = () => database.flushes.map((flush) => flush.session_ids.length)
      const append = (count: number) => Array.from({ length: count }, () => ending(appender, anEvent()))
      const first = append(1)
      const ten = append(10)
      answerNext()
      await Promise.all(first)
      await vi.waitFor(() => expect(sizes()).toEqual([1, 10]))
      const waits = append(waiting)
      answerNext()
      await Promise.all(ten)
      return { sizes, append, answerNext, waits }
    }

    it('has a flush wait until most of those are back that were just answered', async () => {
      const { sizes, append, answerNext, waits } = await afterTen(10_000)
      const most = append(7)
      await sleep(30)
      expect(sizes()).toEqual([1, 10])
      const last = append(1)
      expect(sizes()).toEqual([1, 10, 9])
      answerNext()
      expect(new Set(await Promise.all([...waits, ...most, ...last]))).toEqual(new Set(['stored']))
    })

    it('has it wait no longer than told', async () => {
      const { sizes, append, answerNext, waits } = await afterTen(300)
      const some = append(3)
      expect(sizes()).toEqual([1, 10])
      await vi.waitFor(() => expect(sizes()).toEqual([1, 10, 4]), { timeout: 5_000 })
      answerNext()
      await Promise.all([...waits, ...some])
    })

    it('sends what comes after that at once', async () => {
      const { sizes, append, answerNext } = await afterTen(30, 0)
      await sleep(60)
      const late = append(1)
      expect(sizes()).toEqual([1, 10, 1])
      answerNext()
      await Promise.all(late)
    })

    it('does so only where it is told to', async () => {
      const { sizes, answerNext, waits } = await afterTen(undefined)
      expect(sizes()).toEqual([1, 10, 1])
      answerNext()
      await Promise.all(waits)
    })
  })

  it('keeps the order of a session’s requests', async () => {
    const database = new FakeDatabase()
    const appender = appenderOn(database)
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        appender.append(
          anEvent({ session_id: 's', data: `{"n":${n}}`, if_match: n % 7 === 0 ? n : undefined }),
        ),
      ),
    )
    expect(database.flushes.flatMap((flush) => flush.bodies)).toEqual(
      Array.from({ length: 50 }, (_, n) => ({ n })),
    )
  })

  it('sends a full flush beside the one in flight, of other sessions only', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { queue_requests_max: 2_000 })
    const first = ending(appender, anEvent({ session_id: 'hot' }))
    const hot = Array.from({ length: FLUSH_ENTRIES_MAX - 1 }, () =>
      ending(appender, anEvent({ session_id: 'hot' })),
    )
    const others = Array.from({ length: FLUSH_ENTRIES_MAX }, (_, n) =>
      ending(appender, anEvent({ session_id: `s${n}` })),
    )
    expect(database.flushes.map((flush) => flush.session_ids.length)).toEqual([1, FLUSH_ENTRIES_MAX])
    expect(database.flushes[1]!.session_ids).not.toContain('hot')
    answerNext()
    answerNext()
    await vi.waitFor(() => expect(database.flushes).toHaveLength(3))
    answerNext()
    expect(new Set(await Promise.all([first, ...hot, ...others]))).toEqual(new Set(['stored']))
    expect(new Set(database.flushes[2]!.session_ids)).toEqual(new Set(['hot']))
  })

  it('sends none beside it where what waits of other sessions does not fill it', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { queue_requests_max: 2_000 })
    const appends = Array.from({ length: 2 * FLUSH_ENTRIES_MAX }, (_, n) =>
      ending(appender, anEvent({ session_id: n % 3 === 1 ? 'other' : 'hot' })),
    )
    expect(database.inFlight).toBe(1)
    const pump = setInterval(() => database.inFlight > 0 && answerNext(), 1)
    expect(new Set(await Promise.all(appends))).toEqual(new Set(['stored']))
    clearInterval(pump)
    expect(database.inFlightMax).toBe(1)
  })

  it('doubles up only where a quiet project can still go at once', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { flushes_max: 4, queue_requests_max: 3_000 })
    const busy = ['p1', 'p2'].flatMap((project_id) =>
      Array.from({ length: 2 * FLUSH_ENTRIES_MAX }, () => ending(appender, anEvent({ project_id }))),
    )
    expect(database.inFlight).toBe(3)
    const quiet = ending(appender, anEvent({ project_id: 'p3' }))
    expect(database.flushes.at(-1)!.project_id).toBe('p3')
    const pump = setInterval(() => database.inFlight > 0 && answerNext(), 1)
    await Promise.all([...busy, quiet]).finally(() => clearInterval(pump))
  })

  it.each([0, 8])(
    'never has two flushes of one session in flight, and keeps the order of each, gathering for %i ms',
    async (gather_ms_max) => {
      const open = new Set<string>()
      const met: string[] = []
      const database = new FakeDatabase(async ({ session_ids, rows }, number) => {
        const own = new Set(session_ids)
        met.push(...[...own].filter((session_id) => open.has(session_id)))
        for (const session_id of own) open.add(session_id)
        await sleep(2 + (number % 3) * 5)
        for (const session_id of own) open.delete(session_id)
        return rows
      })
      // A busy machine may take seconds for it.
      const appender = appenderOn(database, { queue_requests_max: 6_000, gather_ms_max, wait_ms_max: 60_000 })
      for (let round = 0; round < 10; round++) {
        const requests = Array.from({ length: 600 }, (_, n) => {
          const session_id = n % 3 === 0 ? `s${n}` : `s${n % 7}`
          return appender.append(anEvent({ session_id, data: JSON.stringify([session_id, round * 600 + n]) }))
        })
        await (round % 3 === 0 ? Promise.all(requests) : sleep(3 * (round % 4)))
      }
      const empty = { requests: 0, bytes: 0, flushes: 0 }
      await vi.waitFor(() => expect(appender.load()).toEqual(empty), { timeout: 60_000 })
      expect(met).toEqual([])
      expect(database.inFlightMax).toBe(2)
      const stored = database.flushes.flatMap((flush) => flush.bodies) as Array<[string, number]>
      expect(stored).toHaveLength(6_000)
      for (let session = 0; session < 600; session++) {
        const numbers = stored
          .filter(([session_id]) => session_id === `s${session}`)
          .map(([, number]) => number)
        expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
      }
    },
  )

  it('forgets no flush of a project when two of it end while it gathers', async () => {
    vi.useFakeTimers()
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { gather_ms_max: 60, queue_requests_max: 1_000 })
    const append = (session_id: string) => ending(appender, anEvent({ session_id }))
    const all = ['first', 'a', 'b', 'c', 'd'].map(append)
    answerNext()
    await vi.advanceTimersByTimeAsync(60)
    expect(database.flushes).toHaveLength(2)
    all.push(...Array.from({ length: FLUSH_ENTRIES_MAX }, (_, n) => append(`s${n}`)))
    expect(database.inFlight).toBe(2)
    answerNext()
    await vi.advanceTimersByTimeAsync(20)
    answerNext()
    await vi.advanceTimersByTimeAsync(50) // What was gathered for after the first is over, and not yet after the second.
    all.push(append('one'))
    await vi.advanceTimersByTimeAsync(30)
    all.push(append('one'))
    expect(database.inFlight).toBe(1)
    vi.useRealTimers()
    const pump = setInterval(() => database.inFlight > 0 && answerNext(), 1)
    await Promise.all(all).finally(() => clearInterval(pump))
    expect(database.flushes.slice(3).map(({ session_ids }) => session_ids)).toEqual([['one'], ['one']])
  })

  it('has no more flushes in flight than allowed over all projects', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { flushes_max: 2 })
    const endings = ['p1', 'p1', 'p2', 'p3', 'p1', 'p3'].map((project_id) =>
      ending(appender, anEvent({ project_id })),
    )
    for (let answered = 0; answered < 4; answered++) {
      await vi.waitFor(() => expect(database.inFlight).toBeGreaterThan(0))
      answerNext()
      await Promise.resolve()
    }
    expect(await Promise.all(endings)).toEqual(Array(6).fill('stored'))
    expect(database.inFlightMax).toBe(2)
    expect(database.flushes.map((flush) => flush.project_id)).toEqual(['p1', 'p2', 'p3', 'p1'])
    await vi.waitFor(() => expect(appender.load()).toEqual({ requests: 0, bytes: 0, flushes: 0 }))
  })

  it('lets a repetition share the fate of the request that it repeats', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database)
    const blocker = appender.append(anEvent())
    const request = anEvent({ idempotency: { key: 'k', request_hash: 'h' } })
    const answers = [request, request, request].map((one) => appender.append(one))
    answerNext()
    await blocker
    await vi.waitFor(() => expect(database.flushes[1]?.session_ids).toHaveLength(1))
    answerNext()
    expect((await Promise.all(answers)).map((answer) => answer.replayed)).toEqual([false, true, true])
  })
})
