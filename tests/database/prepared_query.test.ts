import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DatabasePool, openDatabase, type Row } from '../../packages/kits/src/postgres/database.ts'
import { planned, prepared } from '../../packages/kits/src/postgres/statement.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

let database: TestDatabase
let pool: DatabasePool

beforeAll(async () => {
  database = await createTestDatabase()
  const target = { connectionString: database.url }
  pool = openDatabase({ target, connections_max: 1, wait_ms_max: 5_000, statement_ms_max: 30_000 })
})

afterAll(async () => {
  await pool.close()
  await database.drop()
})

it('a prepared statement takes texts, numbers, null, bytes and arrays, and gives the same rows each time', async () => {
  const statement = prepared(
    'all_kinds',
    `SELECT n, $1::text AS text, $2::bigint AS number, $3::text AS nothing, encode($4::bytea, 'hex') AS bytes, $5::text[] AS texts,
       $6::boolean AS yes FROM generate_series(1, $7::int) AS n`,
  )
  const values = ['naïve 你好 🙂', 2 ** 53 - 1, null, Buffer.from([0, 255]), ['a"b\\', null, '{}'], true]
  const row = {
    ...{ text: 'naïve 你好 🙂', number: '9007199254740991', nothing: null, bytes: '00ff' },
    ...{ texts: '{"a\\"b\\\\",NULL,"{}"}', yes: 't' },
  }
  for (const count of [2, 0, 1])
    expect(await pool.query(statement, [...values, count])).toEqual(
      Array.from({ length: count }, (_, at) => ({ n: String(at + 1), ...row })),
    )
})

it('a statement that failed, as it was prepared, bound or executed, leaves the connection to the next one', async () => {
  const divide = prepared('divide', 'SELECT 12 / $1::int AS quotient')
  const broken = prepared('broken', 'SELECT nowhere')
  for (let round = 0; round < 2; round += 1) {
    await expect(pool.query(divide, [0])).rejects.toMatchObject({ code: '22012', statement: 'divide' })
    await expect(pool.query(divide, ['twelve'])).rejects.toMatchObject({ code: '22P02' })
    await expect(pool.query(broken, [])).rejects.toMatchObject({ code: '42703', statement: 'broken' })
    expect(await pool.query(divide, [3])).toEqual([{ quotient: '4' }])
  }
})

it('a statement without rows returns none, and two of one name are refused', async () => {
  expect(
    await pool.query(prepared('no_rows', 'DELETE FROM schema_migrations WHERE version < $1'), [0]),
  ).toEqual([])
  expect(await pool.query(prepared('same', 'SELECT 1 AS one'), [])).toEqual([{ one: '1' }])
  await expect(pool.query(prepared('same', 'SELECT 2 AS two'), [])).rejects.toThrow(
    'two statements are named same',
  )
  expect(await pool.query(prepared('same', 'SELECT 1 AS one'), [])).toEqual([{ one: '1' }])
})

const PID = prepared(
  'pid',
  'SELECT pg_backend_pid() AS pid, $1::text AS project, $2::int AS nth, now() AS began',
  'one row',
)
const DIVIDE = prepared('divide_by', 'SELECT 12 / $2::int AS quotient WHERE $1::text IS NOT NULL', 'one row')

async function withPool<T>(work: (wide: DatabasePool) => Promise<T>): Promise<T> {
  const target = { connectionString: database.url }
  const wide = openDatabase({ target, connections_max: 4, wait_ms_max: 5_000, statement_ms_max: 30_000 })
  return work(wide).finally(() => wide.close())
}

it('reads of one project that are asked for at once are sent together, each with its own rows', () =>
  withPool(async (wide) => {
    const ask = (project: string, nth: number) => wide.query(PID, [project, nth])
    const rows = (await Promise.all(['a', 'b', 'a', 'a', 'b'].map(ask))).map(([row]) => row!)
    expect(rows.map(({ project }) => project)).toEqual(['a', 'b', 'a', 'a', 'b'])
    expect(new Set(rows.map(({ began }) => began)).size).toBe(2)
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(2)
    expect(wide.usage()).toMatchObject({ total: 2, idle: 2, waiting: 0 })
  }))

it('many reads are divided among the connections, and a long page is read by itself', () =>
  withPool(async (wide) => {
    const pids = async (reads: Promise<Row[]>[]) => (await Promise.all(reads)).map(([row]) => row!.pid)
    const asked = Array.from({ length: 64 }, (_, nth) => wide.query(PID, ['a', nth]))
    expect(new Set(await pids(asked)).size).toBe(4)
    const page = prepared('page', 'SELECT pg_backend_pid() AS pid, now(), $1::text LIMIT $2', 1)
    const paged = (limit: number) =>
      pids([wide.query(page, ['a', limit]), wide.query(page, ['a', limit + 1])])
    expect(new Set(await paged(20)).size).toBe(1)
    expect(new Set(await paged(1_000)).size).toBe(2)
  }))

it('a read that fails takes none with it that was sent beside it', () =>
  withPool(async (wide) => {
    for (const first of [1, 0, 3]) {
      const divisors = [first, 2, 0, 4]
      const settled = await Promise.allSettled(divisors.map((by) => wide.query(DIVIDE, ['a', by])))
      expect(settled).toMatchObject(
        divisors.map((by) =>
          by === 0
            ? { status: 'rejected', reason: { code: '22012', statement: 'divide_by' } }
            : { status: 'fulfilled', value: [{ quotient: String(12 / by) }] },
        ),
      )
    }
    expect(wide.usage()).toMatchObject({ waiting: 0 })
  }))

it('a read sees what was committed before it was asked for, also beside one that was asked for earlier', () =>
  withPool(async (wide) => {
    await wide.query(planned('table', 'CREATE TABLE counted (n int)'), [])
    const count = prepared('count', "SELECT count(*) AS n FROM counted WHERE $1::text = 'a'", 'one row')
    for (let n = 1; n <= 20; n += 1) {
      const earlier = wide.query(count, ['a'])
      await wide.query(planned('one_more', 'INSERT INTO counted VALUES (1)'), [])
      expect(await wide.query(count, ['a'])).toEqual([{ n: String(n) }])
      await earlier
    }
  }))

it('reads that share a connection are away when it is cut, and the next ones have another', () =>
  withPool(async (wide) => {
    const sleep = prepared('sleep', 'SELECT pg_sleep(60) WHERE $1::text IS NOT NULL', 'one row')
    const cut = Promise.allSettled([
      wide.query(PID, ['a', 1]),
      wide.query(sleep, ['a']),
      wide.query(PID, ['a', 2]),
    ])
    const ended = planned(
      'end',
      `SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.query LIKE 'SELECT pg_sleep(60)%' AND a.datname = current_database() AND a.state = 'active'`,
    )
    while ((await wide.query(ended, [])).length === 0);
    const away = { status: 'rejected', reason: { error: 'unavailable', in_doubt: false } }
    expect(await cut).toMatchObject([away, away, away])
    expect(await wide.query(PID, ['b', 3])).toMatchObject([{ project: 'b' }])
  }))
