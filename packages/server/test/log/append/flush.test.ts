import { describe, expect, it } from 'vitest'
import { AnnalsError } from '../../../../kits/src/errors.ts'
import { DatabaseAway, type Row } from '../../../../kits/src/postgres/database.ts'
import type { AppendRequest, PendingAppend } from '../../../src/log/append/append_request.ts'
import { flush, type OnTrouble } from '../../../src/log/append/flush.ts'
import { FakeDatabase, type Flush } from './fake_database.ts'
import { anEvent } from './requests.ts'

const WAIT_MS = 150

/** Flushes the requests and gives how each ended: `stored`, or its error. */
async function endings(
  database: FakeDatabase,
  requests: AppendRequest[],
  {
    waited_ms = 0,
    wait_ms_max = WAIT_MS,
    onTrouble,
  }: { waited_ms?: number; wait_ms_max?: number; onTrouble?: OnTrouble } = {},
): Promise<Array<'stored' | Error>> {
  const ended: Array<'stored' | Error> = []
  const batch = requests.map((request, index): PendingAppend => {
    // As with a promise, only the first ending counts.
    const end = (how: 'stored' | Error) => {
      ended[index] ??= how
    }
    return {
      request,
      bytes: request.entries[0]!.bytes,
      enqueued_at: performance.now() - waited_ms,
      followers: [],
      resolve: () => end('stored'),
      reject: (error) => end(error as Error),
    }
  })
  await flush(database, batch, { wait_ms_max, ...(onTrouble && { onTrouble }) })
  return ended
}

const names = (ended: Array<'stored' | Error>) =>
  ended.map((how) => (how === 'stored' ? how : how instanceof AnnalsError ? how.error : how.name))

function sqlError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

const events = (count: number) =>
  Array.from({ length: count }, (_, n) => anEvent({ session_id: 's', data: `{"n":${n}}` }))

describe('a value that the database cannot hold', () => {
  it('fails alone, and the rest of its flush is stored in order', async () => {
    for (const poisoned of [0, 3, 6]) {
      const stored: unknown[] = []
      const database = new FakeDatabase(({ bodies, rows }) => {
        if (bodies.some((body) => (body as { n: number }).n === poisoned)) throw sqlError('22P05')
        stored.push(...bodies)
        return rows
      })
      const ended = names(await endings(database, events(7)))
      expect(ended).toEqual(ended.map((_, n) => (n === poisoned ? 'invalid_request' : 'stored')))
      expect(stored).toEqual([0, 1, 2, 3, 4, 5, 6].filter((n) => n !== poisoned).map((n) => ({ n })))
    }
  })

  it('does not make the rest "not stored" when the rest takes longer than the wait', async () => {
    const stored: unknown[] = []
    const database = new FakeDatabase(async ({ bodies, rows }, number) => {
      if (number === 1) throw sqlError('22P05')
      await new Promise((resolve) => setTimeout(resolve, 2 * WAIT_MS))
      stored.push(...bodies)
      return rows
    })
    const ended = await endings(database, events(2))
    expect(stored).toHaveLength(2)
    for (const how of ended)
      expect(how instanceof AnnalsError ? how.message : '').not.toMatch(/nothing was stored/i)
  })
})

describe('a connection that is lost', () => {
  const away = (sent: boolean) => new DatabaseAway(sent, new Error('Connection terminated unexpectedly'))

  it('before anything was sent leaves the requests unavailable, once the wait is over', async () => {
    const started = performance.now()
    const database = new FakeDatabase(() => Promise.reject(away(false)))
    // Long enough for a second attempt on a busy machine.
    const ended = await endings(database, events(2), { wait_ms_max: 2_000 })
    expect(names(ended)).toEqual(['unavailable', 'unavailable'])
    expect(performance.now() - started).toBeGreaterThan(1_000)
    expect(database.flushes.length).toBeGreaterThan(1)
  })

  it('is waited out for no longer than the requests have left, the queue included', async () => {
    const database = new FakeDatabase(() => Promise.reject(away(false)))
    expect(names(await endings(database, events(2), { waited_ms: WAIT_MS }))).toEqual([
      'unavailable',
      'unavailable',
    ])
    expect(database.flushes).toHaveLength(1)
  })

  it('with a statement under way leaves the requests in doubt, also when the database then stays away', async () => {
    const database = new FakeDatabase((_flush, number) => Promise.reject(away(number === 1)))
    expect(names(await endings(database, events(2)))).toEqual(['AppendInDoubt', 'AppendInDoubt'])
  })

  it('is made good when the database is back in time', async () => {
    const database = new FakeDatabase(({ rows }, number) => {
      if (number < 3) throw away(number === 1)
      return rows
    })
    expect(names(await endings(database, events(2), { wait_ms_max: 2_000 }))).toEqual(['stored', 'stored'])
  })
})

describe('a flush that is given up', () => {
  const later = () => new Promise<void>((resolve) => setTimeout(resolve, 2 * WAIT_MS))
  const keyed = events(2).map((request, n) => ({
    ...request,
    idempotency: { key: `k${n}`, request_hash: 'h' },
  }))

  it('before it was sent is not sent afterwards: its callers were told that nothing was stored', async () => {
    const database = new FakeDatabase(undefined, later)
    expect(names(await endings(database, keyed))).toEqual(['unavailable', 'unavailable'])
    expect(database.flushes).toEqual([])
  })

  it('is not sent again either, when its first attempt did nothing', async () => {
    let looked = 0
    const database = new FakeDatabase(
      () => Promise.reject(sqlError('40P01')),
      () => (++looked === 1 ? Promise.resolve() : later()),
    )
    expect(names(await endings(database, keyed))).toEqual(['unavailable', 'unavailable'])
    expect(database.flushes).toHaveLength(1)
  })

  it('is counted once, though its statement fails after its callers were told', async () => {
    const troubles: string[] = []
    const database = new FakeDatabase(async () => {
      await later()
      throw new DatabaseAway(true, new Error('Connection terminated unexpectedly'))
    })
    const onTrouble: OnTrouble = (trouble) => troubles.push(trouble)
    expect(names(await endings(database, events(2), { onTrouble }))).toEqual([
      'AppendInDoubt',
      'AppendInDoubt',
    ])
    expect(troubles).toEqual(['in_doubt', 'away'])
  })
})

describe('an error of the statement that passes', () => {
  it.each([
    ['a key or an id that another node stored at the same moment', '23505'],
    ['a deadlock', '40P01'],
    ['a serialization failure', '40001'],
  ])('is met by running the flush again: %s', async (_what, code) => {
    const database = new FakeDatabase(({ rows }: Flush, number): Row[] => {
      if (number < 3) throw sqlError(code)
      return rows
    })
    expect(names(await endings(database, events(3)))).toEqual(['stored', 'stored', 'stored'])
    expect(database.flushes.map((one) => one.session_ids.length)).toEqual([3, 3, 3])
  })

  it('is passed on in the end, for the requests that cause it', async () => {
    const database = new FakeDatabase(({ bodies, rows }) => {
      if (bodies.some((body) => (body as { n: number }).n === 1)) throw sqlError('23505')
      return rows
    })
    expect(names(await endings(database, events(3)))).toEqual(['stored', 'Error', 'stored'])
  })
})
