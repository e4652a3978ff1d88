import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { distributionSteps } from '../../packages/kits/src/postgres/citus/distribute.ts'
import { functionsOf, MODULES } from '../../packages/server/src/service/modules.ts'
import { runAnnals } from '../harness/annals_process.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'
import { ASKS_EVERY_PROJECT, VERIFIES_EVERY_PROJECT } from './asks_every_project.ts'
import { everyStatement } from './every_statement.ts'

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

/** The sentence of docs/scale.md about tables that each machine has whole. */
function referencesOfThePage(): string[] {
  const page = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8')
  const [, list] = /lives on one worker\. (.*) are reference tables/.exec(page) ?? []
  return [...list!.matchAll(/`(\w+)`/g)].map(([, name]) => name!).sort()
}

describe('what the migrations distribute', () => {
  it('is every table, those of tenants by project_id and all in one place', async () => {
    const rows = await queryRows<{ name: string; is_tenant: boolean }>(
      database.url,
      `SELECT t.table_name AS name, EXISTS (SELECT FROM information_schema.columns c
         WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name = 'project_id') AS is_tenant
       FROM information_schema.tables t WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'`,
    )
    const names = rows
      .map(({ name }) => name)
      .filter(
        (name) =>
          !['schema_migrations', 'admin_sessions', 'signing_keys', 'proof_destinations'].includes(name),
      )
    const references = referencesOfThePage()
    expect(stepsOf('create_reference_table').sort()).toEqual(references)
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

describe.skipIf(inject('testServer').mode !== 'shared')('a cluster, which TEST_DATABASE_URL names', () => {
  it('has the reference tables that docs/scale.md lists, and what it says stays on the coordinator', async () => {
    const kinds = await queryRows<{ name: string; kind: string }>(
      database.url,
      `SELECT c.relname AS name, CASE WHEN p.logicalrelid IS NULL THEN 'coordinator' WHEN p.partmethod = 'n' AND p.repmodel = 't' THEN 'reference' ELSE 'distributed' END AS kind
       FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
       WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname !~ '_\\d{6,}$' ORDER BY 1`,
    )
    const of = (kind: string) => kinds.filter((one) => one.kind === kind).map(({ name }) => name)
    expect(of('reference')).toEqual(referencesOfThePage())
    expect(of('coordinator')).toEqual([
      ...['admin_sessions', 'proof_destinations', 'schema_migrations', 'signing_keys'],
    ])
  })
})

describe('every statement of the product', () => {
  it('has no CASE of an operand and no parameter in the ON CONFLICT of an INSERT … SELECT, which Citus passes on wrongly, asks for no generic plan of what names the project twice, which it cannot make, and has no time of a write as text and no JSON made within a CASE of an UPDATE, which it refuses', async () => {
    const texts = (await everyStatement()).map(({ name, text }) => [name, text])
    const definitions = functionsOf(MODULES).map(({ name, definition }) => [name, definition])
    const plansTwoAtOnce = (text: string) =>
      text.includes('force_generic_plan') &&
      text.split(';').some((statement) => statement.split('project_id = p_project').length > 2)
    const refused = [...texts, ...definitions].filter(
      ([, text]) =>
        plansTwoAtOnce(text!) ||
        /\bCASE\b(?!\s+WHEN\b)|RETURNING\b[^;)]*(?:_(?:at|until)::text|to_char)|INSERT INTO[^;)]*\)\s*SELECT\b[^;]*ON CONFLICT[^;]*(?:\$\d|\bp_)|UPDATE \w+ AS[^;]*\bCASE\b(?:(?!\bEND\b)[^;])*\b(?:jsonb?_build_object|to_jsonb?|concat)\(/.test(
          text!,
        ),
    )
    expect(refused.map(([name]) => name)).toEqual([])
  })

  it('inserts nothing by a SELECT into a table of tenants, for which Citus locks all shards of the table, but in copies of long sessions and imports', async () => {
    const tenant = stepsOf('create_distributed_table').join('|')
    const inserts = new RegExp(`INSERT INTO (?:${tenant})\\b[^;()]*\\([^)]*\\)\\s*SELECT\\b`)
    const found = (await everyStatement()).filter(({ text }) => inserts.test(text)).map(({ name }) => name)
    const of_imports = /^restore_|^import_|_blob/
    expect([...new Set(found)].filter((name) => !of_imports.test(name)).sort()).toEqual([
      'copy_slice_of_entries',
      'copy_slice_of_references',
    ])
    const functions = functionsOf(MODULES)
    expect(functions.filter((one) => inserts.test(one.definition_on_cluster))).toEqual([])
    expect(functions.filter(({ definition }) => inserts.test(definition)).length).toBeGreaterThan(20)
  })

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
    const others = [...unbound].filter((name) => !VERIFIES_EVERY_PROJECT.test(name))
    expect(others.sort()).toEqual([...ASKS_EVERY_PROJECT].sort())
    const by_machine = (await everyStatement()).filter((one) => one.on_shards)
    expect([...new Set(by_machine.map(({ name }) => name))].sort()).toEqual([...ASKS_EVERY_PROJECT].sort())
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
