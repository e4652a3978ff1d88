import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LIST_OBJECTS } from '../../packages/archive/src/doctor/doctor_queries.ts'
import { checkHolders } from '../../packages/archive/src/doctor/maintenance.ts'
import { expectedObjects } from '../../packages/archive/src/doctor/schema.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

let own: TestDatabase
let database: DatabasePool

beforeAll(async () => {
  own = await createTestDatabase()
  const limits = { connections_max: 1, wait_ms_max: 5_000, statement_ms_max: 5_000 }
  database = openDatabase({ target: { connectionString: own.url }, ...limits })
})

afterAll(async () => {
  await database.close()
  await own.drop()
})

describe('what the doctor expects of a schema', () => {
  it('is what the migrations make, no more and no less', async () => {
    const rows = await database.query(LIST_OBJECTS, [])
    // On Citus, the coordinator has shards of the reference tables, whose names end with a number.
    const made = rows.map((row) => row.name!).filter((name) => !/^schema_migrations|_\d{6,}$/.test(name))
    expect(
      expectedObjects()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(made.sort())
  })
})

describe('what the doctor finds to be held', () => {
  it('is a transaction that stays open, and who has it', async () => {
    await withConnection(own.url, async (connection) => {
      await connection.query("SET application_name = 'forgotten report'")
      await connection.query('BEGIN')
      await connection.query('SELECT 1')
      const found = await checkHolders(database, 0)
      expect(found.map((one) => one.found)).toContainEqual(
        expect.stringMatching(/forgotten report, idle in transaction/),
      )
      expect((await checkHolders(database)).filter(({ state }) => state !== 'ok')).toEqual([])
      await connection.query('ROLLBACK')
    })
  })

  it('is a prepared transaction that nobody ended', async (context) => {
    const [row] = await queryRows<{ setting: string }>(
      own.url,
      "SELECT current_setting('max_prepared_transactions') AS setting",
    )
    context.skip(row!.setting === '0', 'this server has max_prepared_transactions = 0')
    const name = `left-${randomBytes(4).toString('hex')}`
    await withConnection(own.url, async (connection) => {
      await connection.query('BEGIN')
      await connection.query(`PREPARE TRANSACTION '${name}'`)
      const found = await checkHolders(database, 0)
      await connection.query(`ROLLBACK PREPARED '${name}'`)
      expect(found).toContainEqual(
        expect.objectContaining({
          state: 'failure',
          todo: expect.stringContaining(`ROLLBACK PREPARED '${name}'`),
        }),
      )
    })
  })
})
