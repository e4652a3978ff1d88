import { spawn } from 'node:child_process'
import { readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startEmbeddedPostgres } from '../src/embedded_postgres.js'
import { eventually, IS_ROOT, NAME, processesIn, query, Trial } from './trial.js'

vi.setConfig({ testTimeout: 120_000 })

let trial: Trial
let home: string
let dataDir: string

beforeEach(async () => {
  trial = new Trial()
  home = await trial.directory()
  dataDir = join(home, 'annals')
})

afterEach(() => trial.end())

async function postmasterPid(): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
}

test('a server whose process was killed is found, used again and stopped', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  await query(await holder.connection(), 'CREATE TABLE kept AS SELECT 7 AS n')
  const pid = await postmasterPid()
  await holder.killed()
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await postmasterPid()).toBe(pid)
  expect(await query(server.connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  await server.release()
  expect(await processesIn(home)).toEqual([])
  expect(await readdir(join(dataDir, 'clients'))).toEqual([])
})

test('a killed server is recovered by the next start, with every commit', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  const connection = await holder.connection()
  await query(connection, 'CREATE TABLE kept AS SELECT 7 AS n')
  // A backend that is busy when its postmaster dies holds on to the shared memory for a moment.
  const busy = new pg.Client({ ...connection })
  busy.on('error', () => {})
  await busy.connect()
  const sum = busy.query('SELECT count(*) FROM generate_series(1, 8000000)').catch(() => {})
  await holder.killed()
  process.kill(await postmasterPid(), 'SIGKILL')
  const sentences: string[] = []
  const server = await startEmbeddedPostgres({
    name: NAME,
    dataDir,
    onProgress: (sentence) => sentences.push(sentence),
  })
  expect(await query(server.connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  await sum
  await busy.end().catch(() => {})
  await server.release()
  expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toMatch(/was not properly shut down/)
})

test('a killed server that its stopped process has not yet buried does not keep the next from starting', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  await holder.connection()
  holder.kill('SIGSTOP')
  const pid = await postmasterPid()
  process.kill(pid, 'SIGKILL')
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await server.release()
  expect(await processesIn(home), 'the stopped process is still one of its users').not.toEqual([])
  holder.kill('SIGCONT')
  await holder.release()
  expect(await processesIn(home)).toEqual([])
})

test('a process whose server is killed brings it back', async () => {
  await trial.prepare(dataDir)
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  await query(server.connection, 'CREATE TABLE kept AS SELECT 7 AS n')
  const pid = await postmasterPid()
  process.kill(pid, 'SIGKILL')
  await eventually(async () => (await postmasterPid().catch(() => pid)) !== pid)
  const rows = await eventually(() => query(server.connection, 'SELECT n FROM kept').catch(() => undefined))
  expect(rows).toEqual([{ n: 7 }])
  await server.release()
  expect(await processesIn(home)).toEqual([])
})

test('a process id that was given to another process is not taken for the server', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  await holder.connection()
  const file = join(dataDir, 'postgres/postmaster.pid')
  const remains = await readFile(file, 'utf8')
  const { uid, gid } = await stat(join(dataDir, 'postgres'))
  await holder.release()
  // Of the same user, or PostgreSQL itself would know that it is not one of its own.
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore', ...(IS_ROOT && { uid, gid }) })
  const withStranger = remains.replace(/^\d+/, `${stranger.pid}`)
  await writeFile(file, withStranger, { mode: 0o600 })
  await writeFile(join(dataDir, 'postgres/.s.PGSQL.5432.lock'), withStranger, { mode: 0o600 })
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await server.release()
  expect(stranger.exitCode, 'the stranger was left alone').toBe(null)
  stranger.kill('SIGKILL')
})

test('an empty postmaster.pid, as a crash of the machine leaves it, is no obstacle', async () => {
  await trial.prepare(dataDir)
  const file = join(dataDir, 'postgres/postmaster.pid')
  await writeFile(file, '')
  const before = new Date(Date.now() - 60_000)
  await utimes(file, before, before)
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  await server.release()
})

test('a creation that was killed leaves nothing that a later start stumbles over', async () => {
  for (const moment of ['creating-', 'postgres']) {
    const holder = trial.hold(dataDir)
    await eventually(async () =>
      (await readdir(dataDir).catch(() => [])).some((name) => name.startsWith(moment)),
    )
    await holder.killed()
  }
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await server.release()
  expect((await readdir(dataDir)).sort()).toEqual(['clients', 'postgres', 'postgres.log'])
})

test('a process that is killed while it starts the server leaves the lock to the next', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  await eventually(async () => holder.sentences.some((sentence) => sentence.startsWith('Starting')))
  await holder.killed()
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await server.release()
  expect(await processesIn(home)).toEqual([])
})
