import { afterEach, describe, expect, inject, it } from 'vitest'
import { databaseNameOf, withDatabaseName } from '../harness/database_url.ts'
import { doctor } from '../harness/doctor.ts'
import { execute } from '../harness/sql.ts'
import {
  createEmptyDatabase,
  createTestDatabase,
  reasonForNoOwnDatabase,
  type TestDatabase,
} from '../harness/test_database.ts'

describe.skipIf(reasonForNoOwnDatabase())('annals doctor of a database', () => {
  let database: TestDatabase | undefined

  afterEach(async () => {
    await database?.drop()
    database = undefined
  })

  async function made(misconfigure?: (name: string) => string): Promise<string> {
    database = await createTestDatabase()
    if (misconfigure) await execute(database.url, misconfigure(databaseNameOf(database.url)))
    return database.url
  }

  it('that is as it should be finds no failure', async () => {
    const { code, healthy, failures, checks } = await doctor({ DATABASE_URL: await made() })
    expect({ code, healthy, failures }, JSON.stringify(checks)).toEqual({
      code: 0,
      healthy: true,
      failures: 0,
    })
    expect(new Set(checks.map(({ check }) => check))).toEqual(
      new Set(
        'node variables settings exposure connection latency server schema indexes durability clock connections vacuum transactions'.split(
          ' ',
        ),
      ),
    )
    expect(checks.filter(({ state }) => state === 'skipped')).toEqual([])
  })

  it('that has no schema says that the first start makes it, and makes none', async () => {
    database = await createEmptyDatabase()
    for (let round = 0; round < 2; round++) {
      const { code, of } = await doctor({ DATABASE_URL: database.url })
      expect(code).toBe(0)
      expect(of('schema')[0]!.found).toContain('none yet')
    }
  })

  it.each<[string, string, 'warning' | 'failure', (name: string) => string, RegExp]>([
    [
      'a schema that a newer Annals made',
      'schema',
      'failure',
      () => "INSERT INTO schema_migrations (version, name) VALUES (9999, 'later')",
      /version 9999/,
    ],
    [
      'a missing index',
      'indexes',
      'failure',
      () => 'DROP INDEX sessions_by_created',
      /sessions_by_created is missing/,
    ],
    [
      'a missing unique constraint',
      'indexes',
      'failure',
      () => 'ALTER TABLE entries DROP CONSTRAINT entries_id_unique',
      /entries_id_unique is missing/,
    ],
    [
      'a missing foreign key',
      'indexes',
      'failure',
      () => 'ALTER TABLE session_heads DROP CONSTRAINT session_heads_session_fk',
      /session_heads_session_fk is missing/,
    ],
    [
      'a missing primary key',
      'indexes',
      'failure',
      () => 'ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey',
      /idempotency_keys_pkey is missing/,
    ],
    [
      'commits that do not wait for the disk',
      'durability',
      'failure',
      (name) => `ALTER DATABASE ${name} SET synchronous_commit = off`,
      /synchronous_commit is off/,
    ],
    [
      'a table that nobody vacuums',
      'vacuum',
      'failure',
      () => 'ALTER TABLE session_heads SET (autovacuum_enabled = false)',
      /session_heads/,
    ],
    [
      'too few connections for one node',
      'connections',
      'failure',
      (name) => `ALTER DATABASE ${name} CONNECTION LIMIT 12`,
      /the server has 12/,
    ],
    [
      'connections for one node only',
      'connections',
      'warning',
      (name) => `ALTER DATABASE ${name} CONNECTION LIMIT 30`,
      /one node only/,
    ],
  ])('finds %s', async (_what, check, state, misconfigure, found) => {
    const { code, of } = await doctor({ DATABASE_URL: await made(misconfigure) })
    expect(code).toBe(state === 'failure' ? 1 : 0)
    expect(of(check)).toContainEqual({
      check,
      state,
      found: expect.stringMatching(found),
      todo: expect.any(String),
    })
  })

  it('counts the connections of each worker', async () => {
    const DATABASE_URL = await made((name) => `ALTER DATABASE ${name} CONNECTION LIMIT 56`)
    const env = { DATABASE_URL, ANNALS_DATABASE_CONNECTIONS_MAX: '6', ANNALS_FLUSHES_MAX: '2' }
    const connections = async (...options: string[]) => (await doctor(env, ...options)).of('connections')[0]!
    expect(await connections()).toMatchObject({
      state: 'ok',
      found: expect.stringMatching(/^a node opens up to 14;/),
    })
    expect(await connections('--workers', '4')).toMatchObject({
      state: 'warning',
      found: expect.stringMatching(/^a node of 4 workers opens up to 56; .* one node only$/),
    })
    expect(await connections('--workers', '5')).toMatchObject({
      state: 'failure',
      found: expect.stringMatching(/^a node of 5 workers opens up to 70; the server has 56/),
    })
  })

  it('returns the statement that mends a missing index', async () => {
    const url = await made(() => 'DROP INDEX sessions_by_user_created')
    const before = await doctor({ DATABASE_URL: url })
    const { todo = '' } = before.of('indexes').find(({ state }) => state === 'failure')!
    await execute(url, todo.replace('Make it: ', ''))
    const after = await doctor({ DATABASE_URL: url })
    expect(after.of('indexes')).toEqual([expect.objectContaining({ state: 'ok' })])
  })

  it('finds a database that cannot hold all characters', async () => {
    const { serverUrl, prefix } = inject('testServer')
    const name = `${prefix}_ascii`
    const clause = "ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    await execute(serverUrl, `CREATE DATABASE ${name} ${clause}`)
    try {
      const { code, of } = await doctor({ DATABASE_URL: withDatabaseName(serverUrl, name) })
      expect(code).toBe(1)
      expect(of('server').map(({ found }) => found)).toContain("the database's encoding is SQL_ASCII")
    } finally {
      await execute(serverUrl, `DROP DATABASE ${name}`)
    }
  })
})
