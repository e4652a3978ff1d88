import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DatabasePool, openDatabase } from '../../packages/server/src/postgres/database.ts'
import { prepared } from '../../packages/server/src/postgres/statement.ts'
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
