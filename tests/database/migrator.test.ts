import { readdirSync } from 'node:fs'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { StartError } from '../../packages/kits/src/errors.ts'
import { schemaVersion } from '../../packages/kits/src/postgres/migrations.ts'
import { migrate } from '../../packages/kits/src/postgres/migrator.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { createEmptyDatabase, type TestDatabase } from '../harness/test_database.ts'

let database: TestDatabase
let target: { connectionString: string }

const tables = async () =>
  (
    await queryRows<{ name: string }>(
      database.url,
      `SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1`,
    )
  ).map((row) => row.name)
const versions = async () =>
  (
    await queryRows<{ version: number }>(
      database.url,
      'SELECT version FROM schema_migrations ORDER BY version',
    )
  ).map((row) => row.version)
const allVersions = readdirSync(new URL('../../packages/server/migrations/', import.meta.url))
  .map((name) => Number(name.slice(0, 4)))
  .sort((a, b) => a - b)

async function migrateAndListen(): Promise<string[]> {
  const told: string[] = []
  await migrate(target, (sentence) => told.push(sentence))
  return told
}

/** Cuts the migrator's connection, as kill -9 of its process would. */
async function killMigrator(): Promise<void> {
  await execute(
    database.url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'annals migrate'`,
  )
}

async function waitForBlockedMigrator(): Promise<void> {
  await vi.waitFor(async () => {
    const blocked = await queryRows(
      database.url,
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'annals migrate' AND wait_event_type = 'Lock'`,
    )
    expect(blocked).toHaveLength(1)
  }, 5_000)
}

describe.skipIf(inject('testServer').mode === 'shared')('migrating an empty database', () => {
  beforeEach(async () => {
    database = await createEmptyDatabase()
    target = { connectionString: database.url }
  })
  afterEach(() => database.drop())

  it('applies every migration once and tells of each', async () => {
    expect(await migrateAndListen()).toHaveLength(allVersions.length)
    expect(await versions()).toEqual(allVersions)
    expect(await tables()).toContain('entries')
    expect(await migrateAndListen()).toEqual([])
  })

  it('works for many nodes that start at once: one of them applies each migration', async () => {
    const told = await Promise.all(Array.from({ length: 6 }, migrateAndListen))
    expect(told.flat()).toHaveLength(allVersions.length)
    expect(await versions()).toEqual(allVersions)
  })

  it('refuses a schema that is newer than the program, and names both versions', async () => {
    await migrate(target)
    await execute(
      database.url,
      `INSERT INTO schema_migrations (version, name) VALUES (9999, '9999_from_the_future.sql')`,
    )
    const error = await migrate(target).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StartError)
    expect((error as StartError).message).toMatch(new RegExp(`9999.*\\b${schemaVersion()}\\b`))
  })

  it('leaves nothing of a migration that is killed half way, and does it anew the next time', async () => {
    const blocker = new pg.Client({ connectionString: database.url })
    await blocker.connect()
    await blocker.query('BEGIN')
    await blocker.query('CREATE TABLE learning_spaces (mine integer)')
    const killed = migrate(target).then(
      () => 'done',
      () => 'failed',
    )
    await waitForBlockedMigrator()
    await killMigrator()
    expect(await killed).toBe('failed')
    await blocker.query('ROLLBACK')
    await blocker.end()
    expect(await tables()).toEqual(['schema_migrations'])
    expect(await versions()).toEqual([])
    expect(await migrateAndListen()).toHaveLength(allVersions.length)
  })

  it('leaves nothing of a migration that is interrupted half way, and waits for nothing then', async () => {
    const interrupted = await withConnection(database.url, async (blocker) => {
      await blocker.query('BEGIN')
      await blocker.query('CREATE TABLE learning_spaces (mine integer)')
      const abort = new AbortController()
      const outcome = migrate(target, () => {}, abort.signal).catch((error: unknown) => error)
      await waitForBlockedMigrator()
      abort.abort()
      // The blocker still blocks.
      return (await outcome) === abort.signal.reason
    })
    expect(interrupted).toBe(true)
    expect(await versions()).toEqual([])
    expect(await migrateAndListen()).toHaveLength(allVersions.length)
  })

  it('goes on where another node was killed after it had claimed the migration', async () => {
    await migrate(target)
    await execute(database.url, 'DROP SCHEMA public CASCADE')
    await execute(database.url, 'CREATE SCHEMA public')
    await execute(
      database.url,
      'CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    )
    const told = await withConnection(database.url, async (other) => {
      await other.query('BEGIN')
      await other.query(`INSERT INTO schema_migrations (version, name) VALUES (1, 'claimed')`)
      const waiting = migrateAndListen()
      await waitForBlockedMigrator()
      // As the server sees it when the other node is gone: its transaction ends without a commit.
      await execute(database.url, 'SELECT pg_terminate_backend($1)', [
        (other as unknown as { processID: number }).processID,
      ])
      return waiting
    })
    expect(told).toHaveLength(allVersions.length)
    expect(await versions()).toEqual(allVersions)
  })
})
