import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { isRead, type Statement } from '../../packages/kits/src/postgres/statement.ts'
import { withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'
import { everyStatement } from './every_statement.ts'

/*
 * When the answer to a statement is lost, a write is in doubt and a read is not. Which of the two each statement of
 * the product is, PostgreSQL says: its plan has a node that modifies a table, or it calls a function that may write.
 */

describe.skipIf(inject('testServer').mode === 'shared')('every statement of the product', () => {
  let database: TestDatabase
  let statements: Statement[]
  beforeAll(async () => {
    statements = await everyStatement()
    database = await createTestDatabase()
  })
  afterAll(() => database.drop())

  it('is taken for a read exactly if PostgreSQL writes nothing for it', async () => {
    const wrong: string[] = []
    let reads = 0
    const volatile = await volatileFunctions(database.url)
    await withConnection(database.url, async (connection) => {
      await connection.query('SET plan_cache_mode = force_generic_plan')
      for (const statement of statements) {
        await connection.query(`PREPARE examined AS ${statement.text}`)
        const { rows } = await connection.query(
          `SELECT coalesce(array_length(parameter_types, 1), 0) AS count FROM pg_prepared_statements WHERE name = 'examined'`,
        )
        const nulls = Array.from({ length: rows[0].count }, () => 'NULL').join(', ')
        const { rows: plan } = await connection.query(`EXPLAIN EXECUTE examined${nulls && `(${nulls})`}`)
        await connection.query('DEALLOCATE examined')
        const writes =
          plan.some((line) => /^\W*(Insert|Update|Delete|Merge) on /.test(line['QUERY PLAN'])) ||
          calls(statement.text, volatile)
        if (isRead(statement) === writes) wrong.push(statement.name)
        if (!writes) reads += 1
      }
    })
    expect(wrong).toEqual([])
    expect(reads).toBeGreaterThan(20)
    expect(reads).toBeLessThan(statements.length - 20)
  })

  it('calls no function of the schema that may write', async () => {
    const volatile = await volatileFunctions(database.url)
    const reads = statements.filter((statement) => isRead(statement) && calls(statement.text, volatile))
    expect(reads.map(({ name }) => name)).toEqual([])
  })
})

/** The functions of the schema that may write. */
function volatileFunctions(databaseUrl: string): Promise<string[]> {
  return withConnection(databaseUrl, async (connection) => {
    const { rows } = await connection.query(
      `SELECT p.proname AS name FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.provolatile = 'v'
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')`,
    )
    return rows.map(({ name }) => String(name))
  })
}

function calls(text: string, functions: string[]): boolean {
  return functions.some((name) => new RegExp(`\\b${name}\\s*\\(`).test(text))
}
