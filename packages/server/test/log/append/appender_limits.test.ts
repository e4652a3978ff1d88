import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DatabaseAway } from '../../../../kits/src/postgres/database_errors.ts'
import { appenderOn, ending, pausedDatabase, WAIT_MS } from './appender_setup.ts'
import { FakeDatabase } from './fake_database.ts'
import { anEvent } from './requests.ts'

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
  afterEach(() => {
    vi.useRealTimers()
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
    await vi.waitFor(() => expect(database.flushes).toHaveLength(2))
    answerNext()
    expect(await next).toBe('stored')
  })
})

describe('on a cluster, projects whose machine is away', () => {
  const ofProjects = (name: string, count: number) =>
    Array.from({ length: count }, (_, index) => anEvent({ project_id: `${name}-${index}` }))

  it('keep no other from its turn, however many they are, and are stored when it is back', async () => {
    let isAway = true
    const database = new FakeDatabase(({ project_id, rows }) => {
      if (isAway && project_id.startsWith('away')) throw new DatabaseAway(false, new Error('refused'))
      return rows
    })
    const appender = appenderOn(database, { machineOf: (project) => project })
    const away = ofProjects('away', 40)
    const refused = away.map((request) => ending(appender, request))
    const here = ending(appender, anEvent({ project_id: 'here' }))
    // The first of those that are away waits for its machine until the end.
    expect(await Promise.race([here, refused[0]])).toBe('stored')
    expect(new Set(await Promise.all(refused))).toEqual(new Set(['unavailable']))
    isAway = false
    const stored = await Promise.all(away.map((request) => ending(appender, request)))
    expect(new Set(stored)).toEqual(new Set(['stored']))
  })

  it('take half of the slots, once each was found away, where it hangs instead of refusing', async () => {
    const hanging: Array<() => void> = []
    const database = new FakeDatabase(({ project_id, rows }) => {
      if (project_id === 'here') return rows
      return new Promise((_, reject) => hanging.push(() => reject(new DatabaseAway(true, new Error('late')))))
    })
    const appender = appenderOn(database, { machineOf: (project) => project, commit_ms_max: 60_000 })
    const appendAll = () => ofProjects('away', 4).map((request) => ending(appender, request))
    const failAll = (endings: Promise<string>[]) => {
      const failing = setInterval(() => {
        for (const fail of hanging.splice(0)) fail()
      }, 10)
      return Promise.all(endings).finally(() => clearInterval(failing))
    }
    expect(await failAll(appendAll())).not.toContain('stored')
    const again = appendAll()
    expect(await ending(appender, anEvent({ project_id: 'here' }))).toBe('stored')
    expect(hanging).toHaveLength(2)
    expect(await failAll(again)).not.toContain('stored')
  })

  it('take half of the slots as soon as one of their machine was found away, those that were queued before as well', async () => {
    const hanging: Array<() => void> = []
    let isAway = true
    const database = new FakeDatabase(({ project_id, rows }) => {
      if (!isAway || project_id === 'here') return rows
      return new Promise((_, reject) =>
        hanging.push(() => reject(new DatabaseAway(false, new Error('late')))),
      )
    })
    const machineOf = (project: string) => (project === 'here' ? 'worker-1' : 'worker-2')
    const appender = appenderOn(database, { machineOf })
    const away = ofProjects('away', 8).map((request) => ending(appender, request))
    const here = ending(appender, anEvent({ project_id: 'here' }))
    await vi.waitFor(() => expect(hanging).toHaveLength(4))
    for (const fail of hanging.splice(0)) fail()
    expect(await here).toBe('stored')
    isAway = false
    await vi.waitFor(() => {
      for (const fail of hanging.splice(0)) fail()
      expect(appender.load().requests).toBe(0)
    })
    expect((await Promise.all(away)).filter((how) => how === 'stored')).toHaveLength(6)
  })
})
