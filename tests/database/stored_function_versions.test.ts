import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { installFunctions } from '../../packages/kits/src/postgres/install_functions.ts'
import { type StoredFunction, storedFunction } from '../../packages/kits/src/postgres/stored_function.ts'
import { FUNCTIONS } from '../../packages/server/src/service/modules.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/** What a version of Annals has beside all that this one has. */
const probe = (version: number) =>
  storedFunction(
    'probe',
    `CREATE OR REPLACE FUNCTION {name}(
  p_project uuid
)
RETURNS text LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN ${version};
END
$function$`,
  )
const [FIRST, SECOND, THIRD] = [probe(1), probe(2), probe(3)]

describe.skipIf(inject('testServer').mode === 'shared')('the stored functions of several versions', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database.drop())

  const install = (...own: StoredFunction[]) =>
    installFunctions({ connectionString: database.url }, [...FUNCTIONS, ...own])
  const named = async (pattern: string) => {
    const rows = await queryRows<{ name: string }>(
      database.url,
      'SELECT p.proname AS name FROM pg_proc p WHERE p.proname ~ $1 ORDER BY 1',
      [pattern],
    )
    return rows.map(({ name }) => name)
  }
  const probes = () => named('^probe_')
  const nameOf = ({ name }: StoredFunction) => name
  /** As if the version that has it had been left so many days ago. */
  const leftFor = (days: number, { name }: StoredFunction) =>
    execute(
      database.url,
      `DO $$ BEGIN EXECUTE format('COMMENT ON FUNCTION ${name} IS %L',
        to_char((now() - interval '${days} days') AT TIME ZONE 'UTC', '"superseded at "YYYY-MM-DD"T"HH24:MI:SS"Z"')); END $$`,
    )

  it('stay while nodes of the version before may run, and go with a later install', async () => {
    await install(FIRST)
    await install(SECOND)
    expect(await probes()).toEqual([FIRST, SECOND].map(nameOf).sort())
    await install(THIRD)
    expect(await probes()).toEqual([FIRST, SECOND, THIRD].map(nameOf).sort())
    await leftFor(8, FIRST)
    await leftFor(6, SECOND)
    await install(FIRST, SECOND, THIRD)
    expect(await probes()).toEqual([FIRST, SECOND, THIRD].map(nameOf).sort())
  })

  it('are dropped a week after the last version that has them, and never if that came back', async () => {
    await install(FIRST, SECOND)
    await install(THIRD)
    await leftFor(8, FIRST)
    await leftFor(8, SECOND)
    // The version with the first one came back.
    await install(FIRST)
    expect(await probes()).toEqual([FIRST, THIRD].map(nameOf).sort())
    await install(probe(4))
    expect(await probes()).toContain(FIRST.name)
  })

  it('of this version are neither marked nor dropped by starting again', async () => {
    const before = await named('_[0-9a-f]{8}$')
    await install()
    expect(await named('_[0-9a-f]{8}$')).toEqual(before)
    const marked = await queryRows<{ name: string }>(
      database.url,
      "SELECT p.proname AS name FROM pg_proc p WHERE obj_description(p.oid, 'pg_proc') LIKE 'superseded%' ORDER BY 1",
    )
    const wanted = new Set(FUNCTIONS.map(nameOf))
    expect(marked.filter(({ name }) => wanted.has(name))).toEqual([])
  })
})
