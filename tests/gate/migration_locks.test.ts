import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DatabaseNotReady } from '../../packages/kits/src/errors.ts'
import { schemaVersion } from '../../packages/kits/src/postgres/migrations.ts'
import { migrate } from '../../packages/kits/src/postgres/migrator.ts'
import { boundLockWaits, schemaTransaction } from '../../packages/kits/src/postgres/schema_change.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { createEmptyDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

/** Of entries that are there before the migration. Ten millions take minutes: docs/operations.md. */
const ROWS = Number(process.env.TEST_MIGRATION_ROWS ?? 2_000)
const MINUTES = 60_000
const OLD_SCHEMA = readFileSync(new URL('../fixtures/upgrade/schema_23.sql', import.meta.url), 'utf8')
const PROJECT = '0193bbbb-0000-7000-8000-000000000001'
const SESSIONS = Array.from({ length: 8 }, (_, place) => `0193bbbb-0000-7000-9000-00000000000${place}`)

/** What a node of the old version does for an append, as far as locks are concerned. */
async function append(client: pg.Client, session_id: string): Promise<void> {
  await client.query('BEGIN')
  const { rows } = await client.query(
    'UPDATE session_heads SET last_seq = last_seq + 1 WHERE project_id = $1 AND session_id = $2 RETURNING last_seq',
    [PROJECT, session_id],
  )
  await client.query(
    `INSERT INTO entries (project_id, session_id, seq, id, kind, type, data, bytes, tokens, created_at, updated_at)
     VALUES ($1, $2, $3, gen_random_uuid(), 'event', 'note', '{"n": 1}', 8, 1, now(), now())`,
    [PROJECT, session_id, rows[0].last_seq],
  )
  await client.query('COMMIT')
}

/** Appends on and on, on connections of their own. Ends with how many, and the longest one, in ms. */
function appendAllTheTime(url: string) {
  let is_over = false
  const seen = { appends: 0, longest_ms: 0 }
  const writers = SESSIONS.map((session_id) =>
    withConnection(url, async (client) => {
      while (!is_over) {
        const began = performance.now()
        await append(client, session_id)
        seen.appends += 1
        seen.longest_ms = Math.max(seen.longest_ms, performance.now() - began)
      }
    }),
  )
  return {
    seen,
    end: async () => {
      is_over = true
      await Promise.all(writers)
    },
  }
}

describe.skipIf(reasonForNoOwnDatabase() !== undefined)('a migration of a database in use', () => {
  let database: TestDatabase
  let target: { connectionString: string }
  const reader = async (work: (pid: number, client: pg.Client) => Promise<void>) =>
    withConnection(database.url, async (client) => {
      await client.query("SET application_name = 'a long report'")
      await client.query('BEGIN')
      const { rows } = await client.query(
        'SELECT pg_backend_pid() AS pid, count(*) FROM (SELECT FROM entries LIMIT 1) e',
      )
      await work(rows[0].pid, client)
      await client.query('ROLLBACK')
    })

  beforeEach(async () => {
    database = await createEmptyDatabase()
    target = { connectionString: database.url }
    await execute(database.url, OLD_SCHEMA)
    await execute(database.url, "INSERT INTO projects (id, name, created_at) VALUES ($1, 'busy', now())", [
      PROJECT,
    ])
    await execute(
      database.url,
      `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at)
       SELECT $1, s, '{}', false, now() FROM unnest($2::uuid[]) s`,
      [PROJECT, SESSIONS],
    )
    await execute(
      database.url,
      `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
       SELECT $1, s, $3::bigint / 8, 0, now() FROM unnest($2::uuid[]) s`,
      [PROJECT, SESSIONS, ROWS],
    )
    await execute(
      database.url,
      `INSERT INTO entries (project_id, session_id, seq, id, kind, type, data, bytes, tokens, created_at, updated_at)
       SELECT $1, s, n, gen_random_uuid(), 'event', 'note', '{"n": 1}', 8, 1, now(), now()
       FROM unnest($2::uuid[]) s CROSS JOIN generate_series(1, $3::bigint / 8) n`,
      [PROJECT, SESSIONS, ROWS],
    )
  }, 30 * MINUTES)
  afterEach(() => database.drop())

  it(
    'lets writers through while a long reader keeps it from its lock, says who that is, and ends once it can',
    async () => {
      const told: string[] = []
      const load = appendAllTheTime(database.url)
      let migrating: Promise<void> | undefined
      await reader(async (pid) => {
        migrating = migrate(
          target,
          () => {},
          undefined,
          (sentence) => told.push(sentence),
        )
        await vi.waitFor(() => expect(told.join()).toContain(`process ${pid} (a long report, for`), 60_000)
        // All of them have stood behind it; the reader still reads.
        const before = load.seen.appends
        await vi.waitFor(() => expect(load.seen.appends).toBeGreaterThan(before + 100), 60_000)
      })
      const began = performance.now()
      await migrating
      const took_ms = performance.now() - began
      await load.end()
      expect(await queryRows(database.url, 'SELECT max(version) AS version FROM schema_migrations')).toEqual([
        { version: schemaVersion() },
      ])
      const [stored] = await queryRows<{ entries: string }>(
        database.url,
        'SELECT count(*) AS entries FROM entries WHERE project_id = $1',
        [PROJECT],
      )
      expect(Number(stored!.entries)).toBe(Math.floor(ROWS / 8) * 8 + load.seen.appends)
      if (process.env.TEST_MIGRATION_ROWS)
        process.stdout.write(
          `${JSON.stringify({ rows: ROWS, ms_after_the_reader: Math.round(took_ms), ...load.seen })}\n`,
        )
    },
    30 * MINUTES,
  )

  it('gives up in the end, with a sentence that names who is in the way, and changes nothing', async () => {
    await withConnection(database.url, async (client) => {
      const work = async () => {
        await boundLockWaits(client)
        await client.query('CREATE TABLE made_before (n integer)')
        await client.query('ALTER TABLE entries ADD COLUMN made_after integer')
      }
      await reader(async (pid) => {
        const error = await schemaTransaction(client, target, work, { retries_ms_max: 1_000 }).catch(
          (reason: unknown) => reason,
        )
        expect(error).toBeInstanceOf(DatabaseNotReady)
        expect((error as Error).message).toMatch(
          new RegExp(
            `^A table could not be locked within 1 s, because process ${pid} \\(a long report, for \\d+ s\\) uses it\\.`,
          ),
        )
      })
      expect((await client.query("SELECT to_regclass('made_before') AS made")).rows).toEqual([{ made: null }])
    })
  })
})
