import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DatabaseAway, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { prepared } from '../../packages/kits/src/postgres/statement.ts'
import { databaseNameOf } from '../harness/database_url.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

const ISOLATION = prepared('isolation', "SELECT current_setting('transaction_isolation') AS isolation")
const ALWAYS_IN_THE_WAY = prepared('always_in_the_way', `INSERT INTO in_the_way VALUES (1)`)

describe.skipIf(reasonForNoOwnDatabase())('a database whose transactions are serializable by default', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
    const name = databaseNameOf(database.url)
    await execute(database.url, `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`)
    await execute(database.url, 'CREATE TABLE in_the_way (n integer)')
    await execute(
      database.url,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$`,
    )
    await execute(
      database.url,
      'CREATE TRIGGER refuse BEFORE INSERT ON in_the_way FOR EACH ROW EXECUTE FUNCTION refuse()',
    )
  })
  afterAll(() => database?.drop())

  it.each([{ pooled: false }, { pooled: true }])(
    'is worked on as the statements are written for, and asks for a retry where it stays in the way: %o',
    async ({ pooled }) => {
      const pool = openDatabase({
        target: { connectionString: database.url, pooled },
        connections_max: 1,
        wait_ms_max: 60_000,
        statement_ms_max: 30_000,
      })
      try {
        const read = [{ isolation: 'read committed' }]
        expect(await pool.transaction((connection) => connection.query(ISOLATION, []))).toEqual(read)
        if (!pooled) expect(await pool.query(ISOLATION, [])).toEqual(read)
        await expect(pool.query(ALWAYS_IN_THE_WAY, [])).rejects.toThrow(DatabaseAway)
        const transaction = pool.transaction((connection) => connection.query(ALWAYS_IN_THE_WAY, []))
        await expect(transaction).rejects.toThrow(DatabaseAway)
      } finally {
        await pool.close()
      }
    },
  )
})
