import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { startAnnals, startServer } from '../harness/annals_process.ts'
import { runCommand } from '../harness/command_process.ts'
import { socketUrl } from '../harness/database_url.ts'
import { expectOk } from '../harness/expectations.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useService } from '../harness/service.ts'
import { mixedEntries, newSessionLog } from '../harness/session_log.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

/*
 * A long command ends with the first SIGTERM or SIGINT, also while the database is in the middle of one of its
 * statements. Here that statement waits for as long as the test wants, so that only cancelling it ends the command.
 */

const END_MS_MAX = 10_000

const service = useService()
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** Sends a signal to a command that would otherwise never end, and expects it to end as one that was interrupted. */
async function expectToEnd({ child, exited }: ReturnType<typeof startAnnals>, signal: NodeJS.Signals) {
  child.kill(signal)
  const killing = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
  const ended = await exited
  clearTimeout(killing)
  expect(ended).toMatchObject({ code: 130, signal: null, stderr: expect.stringContaining('interrupted') })
}

describe.skipIf(reasonForNoOwnDatabase())('in the middle of a statement', () => {
  it.each<[string, NodeJS.Signals, (project: string, file: string) => string[]]>([
    ['verify', 'SIGTERM', (project) => ['--project', project]],
    ['verify', 'SIGINT', () => []],
    ['export', 'SIGTERM', (project) => ['--project', project, '--output', join(directory, 'new')]],
    ['prune', 'SIGTERM', (project) => ['--project', project, '--older-than', '1m']],
    ['import', 'SIGINT', (project, file) => [file, '--project', project]],
  ])('annals %s ends with the first %s, and its statement with it', async (name, signal, argsOf) => {
    const project = await service.newProject()
    const log = await newSessionLog(await service.newClient({ token: project.token }))
    expectOk(await log.batch(mixedEntries(5)), 201)
    const env = { DATABASE_URL: service.databaseUrl }
    const file = join(directory, 'export.ndjson')
    expect((await runCommand(['export', '--project', project.id, '--output', file], env)).code).toBe(0)
    // So that it is old enough to be pruned.
    for (const statement of [
      `UPDATE session_heads SET updated_at = updated_at - interval '1 hour' WHERE project_id = $1`,
      `UPDATE sessions SET created_at = created_at - interval '1 hour' WHERE project_id = $1`,
    ])
      if (name === 'prune') await execute(service.databaseUrl, statement, [project.id])
    await withConnection(service.databaseUrl, async (connection) => {
      await connection.query('BEGIN')
      await connection.query('LOCK TABLE entries IN ACCESS EXCLUSIVE MODE')
      const command = startAnnals([name, ...argsOf(project.id, file)], env)
      const waits = () => lockWaits(service.databaseUrl, connection)
      await vi.waitFor(async () => expect(await waits()).toBeGreaterThan(0), { timeout: 20_000 })
      await expectToEnd(command, signal)
      expect(await waits()).toBe(0)
    })
  })
})

describe.skipIf(!inject('testServer').embedded)('on the embedded PostgreSQL', () => {
  it('annals verify ends in the middle of a statement, and leaves no server behind', async () => {
    const dataDir = join(directory, 'data')
    const env = { ANNALS_DATA_DIR: dataDir }
    const cluster = join(dataDir, 'postgres')
    const url = socketUrl({ host: cluster, port: 5432, user: 'annals', database: 'annals' })
    const server = await startServer(env)
    for (const statement of [
      'ALTER TABLE users RENAME TO users_elsewhere',
      `CREATE FUNCTION users_at_last() RETURNS SETOF users_elsewhere LANGUAGE sql
       AS 'SELECT pg_sleep(600); SELECT * FROM users_elsewhere'`,
      'CREATE VIEW users AS SELECT * FROM users_at_last()',
    ])
      await execute(url, statement)
    await server.stop()
    const command = startAnnals(['verify'], env)
    await vi.waitFor(
      async () => {
        const sleeping = `SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
        expect(await queryRows(url, sleeping)).toHaveLength(1)
      },
      { timeout: 20_000 },
    )
    await expectToEnd(command, 'SIGTERM')
    expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false)
  })
})
