import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { prepared } from '../../packages/kits/src/postgres/statement.ts'
import { execute } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

const log = useLog()
const schema = `prepared_${randomBytes(4).toString('hex')}`
const STORE = prepared('store_early', `INSERT INTO ${schema}.early AS e (id) VALUES ($1) RETURNING e.id`)
let database: DatabasePool

beforeAll(async () => {
  // PostgreSQL looks at the constraint only when it commits.
  for (const statement of [
    `CREATE SCHEMA ${schema}`,
    `CREATE TABLE ${schema}.known (id int PRIMARY KEY)`,
    `CREATE TABLE ${schema}.early (id int REFERENCES ${schema}.known DEFERRABLE INITIALLY DEFERRED)`,
  ])
    await execute(log.url, statement)
  const target = { connectionString: log.url }
  database = openDatabase({ target, connections_max: 1, wait_ms_max: 5_000, statement_ms_max: 20_000 })
})
afterAll(async () => {
  await database.close()
  await execute(log.url, `DROP SCHEMA ${schema} CASCADE`)
})

it('a prepared write that succeeds, and whose commit then fails, is reported as failed', async () => {
  await expect(database.query(STORE, [1])).rejects.toMatchObject({ code: '23503' })
  await execute(log.url, `INSERT INTO ${schema}.known VALUES (1)`)
  expect(await database.query(STORE, [1])).toEqual([{ id: '1' }])
})
