import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { distributionSteps } from '../../packages/server/src/postgres/distribute.ts'
import { runAnnals } from '../harness/annals_process.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'
import { everyStatement } from './every_statement.ts'

/** What asks every project, because that is its task; docs/scale.md lists them. */
const ASKS_EVERY_PROJECT = [
  'find_marks',
  'find_projects_with_remains',
  'find_scans',
  'verify_measure_session_heads',
  'verify_measure_sessions',
  'verify_measure_list_terms',
  'verify_measure_learning_spaces',
  'verify_measure_idempotency_keys',
  'verify_measure_users',
  'verify_next_project_users',
  'verify_next_project_sessions',
  'verify_next_project_session_heads',
  'verify_next_project_entries',
  'verify_next_project_idempotency_keys',
  'verify_next_project_learning_spaces',
  'verify_next_project_erased_sessions',
  'verify_next_project_list_terms',
  'verify_next_project_activity_terms',
  'verify_next_project_change_cursors',
  'verify_next_project_change_marks',
  'verify_next_project_project_consumers',
  'verify_next_project_session_activity',
  'verify_measure_activity_terms',
  'verify_measure_search_entries',
  'verify_measure_search_segments',
  'verify_next_project_search_entries',
  'verify_next_project_search_segments',
  'verify_measure_change_marks',
  'verify_measure_project_consumers',
  'verify_measure_session_activity',
  'verify_measure_skill_versions',
  'verify_next_project_skill_versions',
  'verify_measure_skills',
  'verify_next_project_skills',
  'verify_measure_space_policies',
  'verify_next_project_space_policies',
  'verify_measure_space_sessions',
  'verify_next_project_space_sessions',
  'verify_measure_statement_cites',
  'verify_next_project_statement_cites',
  'verify_measure_statement_feedback',
  'verify_next_project_statement_feedback',
  'verify_measure_statements',
  'verify_next_project_statements',
]

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Cond'?: string
  'Recheck Cond'?: string
  Filter?: string
  Plans?: Plan[]
}

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const stepsOf = (function_name: string) =>
  distributionSteps()
    .filter(({ call }) => call.startsWith(`${function_name}(`))
    .map(({ name }) => name)

describe('what the migrations distribute', () => {
  it('is every table, those of tenants by project_id and all in one place', async () => {
    const rows = await queryRows<{ name: string; is_tenant: boolean }>(
      database.url,
      `SELECT t.table_name AS name, EXISTS (SELECT FROM information_schema.columns c
         WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name = 'project_id') AS is_tenant
       FROM information_schema.tables t WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'`,
    )
    const names = rows.map(({ name }) => name).filter((name) => name !== 'schema_migrations')
    const references = ['projects', 'api_keys']
    expect(stepsOf('create_reference_table')).toEqual(references)
    expect(stepsOf('create_distributed_table').sort()).toEqual(
      names.filter((name) => !references.includes(name)).sort(),
    )
    for (const { call, name } of distributionSteps().filter(({ call }) =>
      call.startsWith('create_distributed_table('),
    )) {
      expect(call).toContain("'project_id'")
      if (name !== 'users') expect(call).toContain("colocate_with => 'users'")
      expect(rows.find((row) => row.name === name)?.is_tenant).toBe(true)
    }
  })
})

describe('every statement of the product', () => {
  it('names the project for each tenant table that it reads, but for those that ask every project', async (context) => {
    context.skip(inject('testServer').mode === 'shared', 'plans of Citus name shards, not tables')
    const tenant = new Set(stepsOf('create_distributed_table'))
    const unbound = new Set<string>()
    await withConnection(database.url, async (connection) => {
      await connection.query('SET plan_cache_mode = force_generic_plan')
      for (const { name, text } of await everyStatement()) {
        await connection.query(`PREPARE examined AS ${text}`)
        const { rows } = await connection.query(
          `SELECT coalesce(array_length(parameter_types, 1), 0) AS count FROM pg_prepared_statements WHERE name = 'examined'`,
        )
        const nulls = Array.from({ length: rows[0].count }, () => 'NULL').join(', ')
        const explained = await connection.query(
          `EXPLAIN (FORMAT JSON) EXECUTE examined${nulls && `(${nulls})`}`,
        )
        if (unboundTables(explained.rows[0]['QUERY PLAN'][0].Plan as Plan, tenant).length > 0)
          unbound.add(name)
        await connection.query('DEALLOCATE examined')
      }
    })
    expect([...unbound].sort()).toEqual([...ASKS_EVERY_PROJECT].sort())
  })
})

describe('annals distribute', () => {
  it('says what to do where there is no Citus', async (context) => {
    context.skip(inject('testServer').mode === 'shared', 'this server has Citus')
    const result = await runAnnals(['distribute'], { DATABASE_URL: database.url })
    expect(result.code).toBe(1)
    expect(result.stderr).toMatch(/^annals: The database has no Citus\. .*CREATE EXTENSION citus/m)
  })
})

/** Tenant tables that a plan reads without a condition on their project_id. */
function unboundTables(plan: Plan, tenant: Set<string>): string[] {
  const table = plan['Relation Name']
  const isScan = plan['Node Type'].endsWith('Scan')
  const conditions = [plan['Index Cond'], plan['Recheck Cond'], plan.Filter].join(' ')
  const own =
    table && tenant.has(table) && isScan && !/(?<!IS NULL\) OR \()project_id = /.test(conditions)
      ? [table]
      : []
  return [...own, ...(plan.Plans ?? []).flatMap((child) => unboundTables(child, tenant))]
}
