import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { migrate } from '../../packages/kits/src/postgres/migrator.ts'
import { termsOutOfStep } from '../harness/list_terms.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { createEmptyDatabase, type TestDatabase } from '../harness/test_database.ts'

const FIRST = new URL('../../packages/server/migrations/0001_projects_sessions_log.sql', import.meta.url)
const PROJECT = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

describe.skipIf(inject('testServer').mode === 'shared')('migrating a database that has sessions', () => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await createEmptyDatabase()
  })
  afterEach(() => database.drop())

  it('writes the terms of those that are there', async () => {
    await execute(
      database.url,
      'CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    )
    await execute(database.url, `INSERT INTO schema_migrations VALUES (1, '0001_projects_sessions_log.sql')`)
    await execute(database.url, readFileSync(FIRST, 'utf8'))
    await execute(database.url, `INSERT INTO projects VALUES ('${PROJECT}', 'old', now())`)
    await execute(
      database.url,
      `INSERT INTO users VALUES ('${PROJECT}', md5('ada')::uuid, 'ada', now(), now())`,
    )
    for (const [table, columns] of [
      ['sessions', 'configs, disable_task_tracking, created_at'],
      ['learning_spaces', 'meta, updated_at, created_at'],
    ]) {
      await execute(
        database.url,
        `INSERT INTO ${table} (project_id, id, user_id, ${columns})
         SELECT '${PROJECT}', md5(n::text)::uuid, CASE WHEN n % 2 = 0 THEN md5('ada')::uuid END,
           jsonb_build_object('n', n, 'deep', jsonb_build_array(jsonb_build_object('m', n % 3))),
           ${table === 'sessions' ? 'false' : 'now()'}, now() FROM generate_series(1, 30) AS n`,
      )
    }
    await migrate({ connectionString: database.url })
    expect(await termsOutOfStep(database.url, PROJECT)).toEqual([])
    const [row] = await queryRows<{ count: string }>(database.url, 'SELECT count(*) FROM list_terms')
    // n, deep, its element, m: 4 terms each, and the user of every second.
    expect(Number(row!.count)).toBe(2 * (30 * 4 + 15))
  })
})
