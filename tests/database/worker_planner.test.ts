import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { setPlannerOfWorkers } from '../../packages/kits/src/postgres/citus/workers.ts'
import { migrate } from '../../packages/kits/src/postgres/migrator.ts'
import { REQUEST_SETTINGS } from '../../packages/kits/src/postgres/pool_settings.ts'
import { execute, withConnection } from '../harness/sql.ts'
import { createEmptyDatabase, type TestDatabase } from '../harness/test_database.ts'

let database: TestDatabase

/** What a new connection has that asks for nothing, as those between the machines of a cluster. */
async function settings(): Promise<Record<string, string>> {
  const { rows } = await withConnection(database.url, (connection) =>
    connection.query<{ name: string; setting: string }>(
      'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
      [Object.keys(REQUEST_SETTINGS)],
    ),
  )
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

describe.skipIf(inject('testServer').mode === 'shared')('how connections between machines plan', () => {
  beforeEach(async () => {
    database = await createEmptyDatabase()
    await migrate({ connectionString: database.url })
  })
  afterEach(() => database.drop())

  const set = (distributed: boolean) => setPlannerOfWorkers({ connectionString: database.url, distributed })

  it('is set by one of several nodes that start at once, for what need not know its shard', async () => {
    await Promise.all(Array.from({ length: 4 }, () => set(true)))
    expect(await settings()).toEqual({ ...REQUEST_SETTINGS, plan_cache_mode: 'auto' })
  })

  it('is left to an operator who has set it otherwise', async () => {
    await execute(
      database.url,
      `DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET enable_material = on', current_database()); END $$`,
    )
    await set(true)
    expect(await settings()).toMatchObject({ enable_material: 'on', enable_hashjoin: 'off' })
  })

  it('stays as it is on a single server', async () => {
    const before = await settings()
    await set(false)
    expect(await settings()).toEqual(before)
    expect(before.enable_hashjoin).toBe('on')
  })
})
