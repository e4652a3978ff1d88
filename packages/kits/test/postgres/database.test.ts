import type { Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Appender } from '../../../server/src/log/append/appender.ts'
import { anEvent } from '../../../server/test/log/append/requests.ts'
import { DatabaseAway, type DatabasePool, openDatabase } from '../../src/postgres/database.ts'
import { planned, prepared } from '../../src/postgres/statement.ts'
import {
  type FakePostgres,
  fullDiskAnswer,
  type OnMessage,
  readOnlyAnswer,
  rowAnswer,
  startFakePostgres,
  stoppingAnswer,
  unreplicatedNotice,
} from './fake_postgres.ts'

const WAIT_MS = 1_500
const WRITE = planned('write', 'DELETE FROM anything')
const READ = planned('read', 'SELECT pg_sleep(60)')
const READ_OF_PARTS = planned('read_of_parts', '\nWITH slept AS (SELECT pg_sleep(60)) SELECT * FROM slept')
const WRITE_IN_A_PART = planned('write_in_a_part', 'WITH gone AS (DELETE FROM anything RETURNING 1) SELECT 1')

const closings: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function openFake(
  onMessage?: OnMessage,
  signal?: AbortSignal,
  afterLogin?: Buffer,
): Promise<{ server: FakePostgres; database: DatabasePool }> {
  const server = await startFakePostgres(onMessage, afterLogin)
  closings.push(() => server.close())
  const database = openDatabase({
    target: server.target,
    connections_max: 2,
    wait_ms_max: WAIT_MS,
    statement_ms_max: 200,
    ...(signal && { signal }),
  })
  closings.push(() => database.close())
  return { server, database }
}

async function awayOf(attempt: Promise<unknown>): Promise<DatabaseAway> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(DatabaseAway)
  return error as DatabaseAway
}

describe('a database that breaks off', () => {
  // Whatever else a broken connection raises must not surface as an uncaught exception, which would end the
  // process (and here, the test run).
  it.each<[string, OnMessage]>([
    ['closes the connection', (socket) => socket.end()],
    ['drops the connection', (socket) => socket.destroy()],
    ['resets the connection', (socket) => socket.resetAndDestroy()],
  ])('while a statement runs is away, with the statement sent, when it %s', async (_how, onMessage) => {
    const { database } = await openFake(onMessage)
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ error: 'unavailable', in_doubt: true })
    expect(database.usage()).toMatchObject({ total: 0, waiting: 0 })
  })

  it('with the end of the handshake is away', async () => {
    const { database } = await openFake((socket) => socket.destroy(), undefined, stoppingAnswer())
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ error: 'unavailable' })
  })

  it('within a transaction is away and leaves nothing in doubt: nothing was committed', async () => {
    const { database } = await openFake((socket) => socket.destroy())
    expect(await awayOf(database.transaction((connection) => connection.query(WRITE, [])))).toMatchObject({
      error: 'unavailable',
      in_doubt: false,
    })
  })

  it.each([READ, READ_OF_PARTS])('while it reads leaves nothing in doubt: $name', async (read) => {
    const { database } = await openFake((socket) => socket.destroy())
    expect(await awayOf(database.query(read, []))).toMatchObject({ error: 'unavailable', in_doubt: false })
  })

  it('while a part of a statement writes leaves that in doubt', async () => {
    const { database } = await openFake((socket) => socket.destroy())
    expect(await awayOf(database.query(WRITE_IN_A_PART, []))).toMatchObject({ in_doubt: true })
  })
})

describe('a database that does not answer', () => {
  it('is away with nothing sent, when it does not even take the connection', async () => {
    const { database } = await openFake()
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ error: 'unavailable', in_doubt: false })
  })

  it('is away with the statement sent, when it took that and then fell silent', async () => {
    const { database } = await openFake(() => {})
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ error: 'unavailable', in_doubt: true })
    expect(database.usage()).toMatchObject({ total: 0 })
  })

  it('makes an append unavailable and leaves no doubt about it, when no connection could be made', async () => {
    const { database, server } = await openFake()
    const appender = new Appender({
      database: { of: () => database },
      queue_requests_max: 9,
      queue_bytes_max: 999,
      flushes_max: 1,
      wait_ms_max: WAIT_MS,
    })
    closings.push(() => appender.close())
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(appender.append(anEvent())).rejects.toMatchObject({ error: 'unavailable' })
    expect(server.accepted).toBeGreaterThan(0)
  })

  it('leaves an append in doubt, when the append was sent', async () => {
    const { database } = await openFake(() => {})
    const appender = new Appender({
      database: { of: () => database },
      queue_requests_max: 9,
      queue_bytes_max: 999,
      flushes_max: 1,
      wait_ms_max: WAIT_MS,
    })
    closings.push(() => appender.close())
    await expect(appender.append(anEvent())).rejects.toMatchObject({ name: 'AppendInDoubt' })
  })
})

describe('a database that reports a prepared write as complete', () => {
  const STORE = prepared('store', 'INSERT INTO anything DEFAULT VALUES RETURNING 1 AS one')
  const complete = rowAnswer({ one: '1' }, 'not committed')

  it.each<[string, Buffer]>([
    ['stops', Buffer.concat([complete, stoppingAnswer()])],
    ['breaks off', complete],
  ])('and %s before it says that it has committed leaves the write in doubt', async (_how, answer) => {
    const { database } = await openFake((socket, type) => type === 'S' && socket.end(answer))
    expect(await awayOf(database.query(STORE, []))).toMatchObject({ in_doubt: true })
  })

  it('and cannot commit it has not stored it', async () => {
    const { database } = await openFake((socket, type) => {
      if (type === 'S') socket.write(Buffer.concat([complete, readOnlyAnswer()]))
    })
    expect(await awayOf(database.query(STORE, []))).toMatchObject({ in_doubt: false })
  })
})

describe('a database that stores nothing', () => {
  it.each([
    ['only reads', readOnlyAnswer(), 'The database only reads at the moment.'],
    ['has no room', fullDiskAnswer(), "The database's disk is full."],
  ])('as it %s says so', async (_why, answer, sentence) => {
    const { database } = await openFake((socket, type) => {
      if (type === 'Q' || type === 'S') socket.write(answer)
    })
    const { in_doubt, message } = await awayOf(database.query(WRITE, []))
    expect({ in_doubt, message }).toEqual({ in_doubt: false, message: expect.stringContaining(sentence) })
  })
})

describe('a database that stops', () => {
  const answers: OnMessage = (socket, type) =>
    socket.write(type === 'Q' ? rowAnswer({ one: '1' }) : stoppingAnswer())

  it.each(['while a connection is idle is told of', 'while the pool closes is not told of'])(
    '%s',
    async (when) => {
      const lost: string[] = []
      let connection: Socket | undefined
      const server = await startFakePostgres((socket, type, payload) => {
        connection = socket
        answers(socket, type, payload)
      })
      closings.push(() => server.close())
      const database = openDatabase({
        target: server.target,
        connections_max: 1,
        wait_ms_max: WAIT_MS,
        statement_ms_max: 0,
        onIdleError: ({ message }) => lost.push(message),
      })
      await database.query(READ, [])
      const closed = new Promise((resolve) => connection!.once('close', resolve))
      if (when.startsWith('while a connection')) connection!.end(stoppingAnswer())
      else await database.close()
      await closed
      await new Promise(setImmediate)
      const told = when.endsWith('is told of') ? ['terminating connection due to administrator command'] : []
      expect(lost).toEqual(told)
    },
  )
})

describe('a database that is not there', () => {
  it('is away with nothing sent', async () => {
    const { database, server } = await openFake()
    await server.close()
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ error: 'unavailable', in_doubt: false })
  })
})

describe('a database whose work can be cancelled', () => {
  it('takes more than ten statements at once without a warning of a leak, and ends them all', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    closings.push(() => process.off('warning', onWarning))
    const abort = new AbortController()
    const { database } = await openFake(undefined, abort.signal)
    const ended = Promise.allSettled(Array.from({ length: 20 }, () => database.query(READ, [])))
    abort.abort(new Error('over'))
    expect(new Set((await ended).map(({ status }) => status))).toEqual(new Set(['rejected']))
    // Node tells of a warning in the next tick.
    await new Promise(setImmediate)
    expect(warnings).toEqual([])
  })
})

describe('a server that can only read', () => {
  it('loses the connections that were open when it said so, and gets no new one for each write', async () => {
    let isReadOnly = true
    const { server, database } = await openFake((socket, type) => {
      if (type !== 'Q') return
      socket.write(isReadOnly ? readOnlyAnswer() : rowAnswer({ one: '1' }))
    })
    const clock = vi.spyOn(performance, 'now')
    closings.push(() => clock.mockRestore())
    const at = (ms: number) => clock.mockReturnValue(ms)
    const write = () => database.query(WRITE, [])
    at(10_000)
    await Promise.all([awayOf(write()), awayOf(write())])
    expect(database.usage().total).toBe(2)
    at(12_000)
    await awayOf(write())
    // The other connection was as old, and is not used again, either.
    await awayOf(write())
    expect(server.accepted).toBe(3)
    for (let count = 0; count < 5; count++) await awayOf(write())
    expect(server.accepted).toBe(3)
    isReadOnly = false
    expect(await write()).toEqual([{ one: '1' }])
  })

  it('loses them too when somebody else has found out', async () => {
    const { server, database } = await openFake((socket, type) => {
      if (type === 'Q') socket.write(rowAnswer({ one: '1' }))
    })
    await database.query(READ, [])
    database.renew()
    await database.query(READ, [])
    expect(server.accepted).toBe(2)
  })
})

describe('a commit whose wait for a synchronous standby was cancelled', () => {
  it('is in doubt, though the server reports success', async () => {
    let isNoticed = true
    const { database } = await openFake((socket, type) => {
      if (type !== 'Q') return
      socket.write(isNoticed ? Buffer.concat([unreplicatedNotice(), rowAnswer({ one: '1' })]) : rowAnswer({}))
    })
    expect(await awayOf(database.query(WRITE, []))).toMatchObject({ in_doubt: true })
    isNoticed = false
    await database.query(WRITE, [])
  })
})

describe('a connection', () => {
  it('is replaced when it has been used for as long as it may', async () => {
    const server = await startFakePostgres((socket, type) => {
      if (type === 'Q') socket.write(rowAnswer({ one: '1' }))
    })
    closings.push(() => server.close())
    const bounds = { connections_max: 1, wait_ms_max: WAIT_MS, statement_ms_max: 200, lifetime_ms_max: 50 }
    const database = openDatabase({ target: server.target, ...bounds })
    closings.push(() => database.close())
    await vi.waitFor(async () => {
      await database.query(READ, [])
      expect(server.accepted).toBeGreaterThan(2)
    })
  })
})
