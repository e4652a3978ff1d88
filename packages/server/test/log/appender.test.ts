import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
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
      const { sizes, append, answerNext, waits } = await afterTen(30)
      const some = append(3)
      expect(sizes()).toEqual([1, 10])
      await vi.waitFor(() => expect(sizes()).toEqual([1, 10, 4]))
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

  it('never has two flushes of one project in flight, and keeps the order of each session', async () => {
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
    const appender = appenderOn(database, { queue_requests_max: 1_000 })
    for (let round = 0; round < 10; round++) {
      const requests = Array.from({ length: 100 }, (_, n) => {
        const session_id = n % 3 === 0 ? `s${n}` : `s${n % 7}`
        return appender.append(anEvent({ session_id, data: JSON.stringify([session_id, round * 100 + n]) }))
      })
      await (round % 3 === 0 ? Promise.all(requests) : sleep(3))
    }
    await vi.waitFor(() => expect(appender.load()).toEqual({ requests: 0, bytes: 0, flushes: 0 }))
    expect(met).toEqual([])
    expect(database.inFlightMax).toBe(1)
    const stored = database.flushes.flatMap((flush) => flush.bodies) as Array<[string, number]>
    expect(stored).toHaveLength(1_000)
    for (let session = 0; session < 100; session++) {
      const numbers = stored
        .filter(([session_id]) => session_id === `s${session}`)
        .map(([, number]) => number)
      expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
    }
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
