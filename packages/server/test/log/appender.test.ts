import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Row } from '../../src/database/database.ts'
import type { AppendRequest } from '../../src/log/append_request.ts'
import { Appender, type AppenderOptions } from '../../src/log/appender.ts'
import { FakeDatabase, type Flush } from './fake_database.ts'
import { anEvent } from './requests.ts'

const WAIT_MS = 1_000

const appenders: Appender[] = []
afterEach(() => {
  for (const appender of appenders.splice(0)) appender.close()
  vi.useRealTimers()
})

function appenderOn(database: FakeDatabase, options: Partial<AppenderOptions> = {}): Appender {
  const appender = new Appender({
    database,
    queue_requests_max: 100,
    queue_bytes_max: 100_000,
    flushes_max: 4,
    wait_ms_max: WAIT_MS,
    ...options,
  })
  appenders.push(appender)
  return appender
}

/** A database that answers when it is told to. */
function pausedDatabase(): { database: FakeDatabase; answerNext: () => void } {
  const held: Array<() => void> = []
  const hold = (flush: Flush) => new Promise<Row[]>((resolve) => held.push(() => resolve(flush.rows)))
  return { database: new FakeDatabase(hold), answerNext: () => held.shift()!() }
}

/** How an append ended: `stored`, or the name of its error. */
function ending(appender: Appender, request: AppendRequest): Promise<string> {
  return appender.append(request).then(
    () => 'stored',
    (error: { error?: string; name: string }) => error.error ?? error.name,
  )
}

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

  it('sends a second flush beside the first when many wait, of other sessions only', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database)
    const first = ending(appender, anEvent({ session_id: 'hot' }))
    const others = Array.from({ length: 60 }, (_, n) =>
      ending(appender, anEvent({ session_id: n % 2 ? 'hot' : `s${n}` })),
    )
    await vi.waitFor(() => expect(database.flushes).toHaveLength(2))
    expect(database.flushes[1]!.session_ids).not.toContain('hot')
    expect(database.flushes[1]!.session_ids).toHaveLength(30)
    answerNext()
    answerNext()
    await vi.waitFor(() => expect(database.flushes).toHaveLength(3))
    answerNext()
    expect(new Set(await Promise.all([first, ...others]))).toEqual(new Set(['stored']))
    expect(new Set(database.flushes[2]!.session_ids)).toEqual(new Set(['hot']))
    expect(database.inFlightMax).toBe(2)
  })

  it('never has two flushes of one session in flight, and keeps the order of each', async () => {
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
    expect(database.inFlightMax).toBe(2)
    const stored = database.flushes.flatMap((flush) => flush.bodies) as Array<[string, number]>
    expect(stored).toHaveLength(1_000)
    for (let session = 0; session < 100; session++) {
      const numbers = stored
        .filter(([session_id]) => session_id === `s${session}`)
        .map(([, number]) => number)
      expect(numbers).toEqual([...numbers].sort((one, other) => one - other))
    }
  })

  it('doubles up only where a quiet project can still go at once', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { flushes_max: 4 })
    const busy = ['p1', 'p2'].flatMap((project_id) =>
      Array.from({ length: 60 }, () => ending(appender, anEvent({ project_id }))),
    )
    await new Promise((resolve) => setImmediate(resolve))
    expect(database.inFlight).toBe(3)
    const quiet = ending(appender, anEvent({ project_id: 'p3' }))
    expect(database.flushes.at(-1)!.project_id).toBe('p3')
    const pump = setInterval(() => database.inFlight > 0 && answerNext(), 1)
    await Promise.all([...busy, quiet]).finally(() => clearInterval(pump))
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

describe('a queue that is full', () => {
  it('by count is refused as overloaded, and takes requests again when there is room', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { queue_requests_max: 3 })
    const inFlight = ending(appender, anEvent())
    const waiting = [1, 2, 3].map(() => ending(appender, anEvent()))
    expect(await ending(appender, anEvent())).toBe('overloaded')
    expect(appender.load().requests).toBe(3)
    answerNext()
    expect(await inFlight).toBe('stored')
    await vi.waitFor(() => expect(database.flushes).toHaveLength(2))
    const later = ending(appender, anEvent())
    answerNext()
    expect(await Promise.all(waiting)).toEqual(['stored', 'stored', 'stored'])
    await vi.waitFor(() => expect(database.flushes).toHaveLength(3))
    answerNext()
    expect(await later).toBe('stored')
  })

  it('by bytes is refused as overloaded, while a smaller request still fits', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { queue_bytes_max: 1_000 })
    const body = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2))
    const inFlight = ending(appender, anEvent({ data: body(900) }))
    const waiting = ending(appender, anEvent({ data: body(900) }))
    expect(await ending(appender, anEvent({ data: body(101) }))).toBe('overloaded')
    const small = ending(appender, anEvent({ data: body(100) }))
    expect(appender.load().bytes).toBe(1_000)
    answerNext()
    await vi.waitFor(() => expect(database.flushes).toHaveLength(2))
    answerNext()
    expect(await Promise.all([inFlight, waiting, small])).toEqual(['stored', 'stored', 'stored'])
    await vi.waitFor(() => expect(appender.load()).toEqual({ requests: 0, bytes: 0, flushes: 0 }))
  })

  it('counts the repetitions of a request while they wait, and lets them go with it', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database, { queue_requests_max: 2 })
    const inFlight = ending(appender, anEvent())
    const request = anEvent({ idempotency: { key: 'k', request_hash: 'h' } })
    const repeated = [request, request].map((one) => ending(appender, one))
    expect(await ending(appender, request)).toBe('overloaded')
    answerNext()
    await inFlight
    await vi.waitFor(() => expect(database.flushes).toHaveLength(2))
    expect(appender.load().requests).toBe(0)
    answerNext()
    expect(await Promise.all(repeated)).toEqual(['stored', 'stored'])
  })
})

describe('a database that does not answer', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
    })
  })

  it('leaves what was sent in doubt and what waits behind it unavailable, each after its time', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database)
    const ended: string[] = []
    const watch = (name: string) => ending(appender, anEvent()).then((how) => ended.push(`${name}: ${how}`))
    const sent = watch('sent')
    await vi.advanceTimersByTimeAsync(500)
    const early = watch('early')
    await vi.advanceTimersByTimeAsync(300)
    const late = watch('late')
    await vi.advanceTimersByTimeAsync(200)
    expect(ended).toEqual(['sent: AppendInDoubt'])
    await vi.advanceTimersByTimeAsync(700)
    expect(ended).toEqual(['sent: AppendInDoubt', 'early: unavailable'])
    expect(appender.load()).toMatchObject({ requests: 1, flushes: 1 })
    await vi.advanceTimersByTimeAsync(300)
    expect(ended).toEqual(['sent: AppendInDoubt', 'early: unavailable', 'late: unavailable'])
    expect(appender.load()).toEqual({ requests: 0, bytes: 0, flushes: 1 })
    answerNext()
    await Promise.all([sent, early, late])
    await vi.advanceTimersByTimeAsync(0)
    expect(database.flushes).toHaveLength(1)
    expect(appender.load()).toEqual({ requests: 0, bytes: 0, flushes: 0 })
  })

  it('is not overtaken: the next flush of the project begins when the last one has ended', async () => {
    const { database, answerNext } = pausedDatabase()
    const appender = appenderOn(database)
    const sent = ending(appender, anEvent())
    await vi.advanceTimersByTimeAsync(WAIT_MS)
    expect(await sent).toBe('AppendInDoubt')
    const next = ending(appender, anEvent())
    await vi.advanceTimersByTimeAsync(WAIT_MS / 2)
    expect(database.flushes).toHaveLength(1)
    answerNext()
    await vi.advanceTimersByTimeAsync(0)
    expect(database.flushes).toHaveLength(2)
    answerNext()
    expect(await next).toBe('stored')
  })
})
