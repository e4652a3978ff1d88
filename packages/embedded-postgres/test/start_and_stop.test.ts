import { readdir, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startEmbeddedPostgres } from '../src/embedded_postgres.js'
import { NAME, processesIn, query, Trial } from './trial.js'

let trial: Trial
let home: string
let dataDir: string

beforeEach(async () => {
  trial = new Trial()
  home = await trial.directory()
  dataDir = join(home, 'annals')
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await trial.end()
})

test('a new directory becomes a server, and release leaves no process', async () => {
  const sentences: string[] = []
  const server = await startEmbeddedPostgres({
    name: NAME,
    dataDir,
    onProgress: (sentence) => sentences.push(sentence),
  })
  expect(await query(server.connection, 'SELECT current_user, current_database()')).toEqual([
    { current_user: NAME, current_database: NAME },
  ])
  expect(sentences[0]).toBe(`Creating the database in ${dataDir}`)
  expect(sentences[1]).toMatch(/^Starting PostgreSQL 18\.\d+$/)
  await server.release()
  expect(await processesIn(home)).toEqual([])
  expect(await readdir(join(dataDir, 'clients'))).toEqual([])
})

test('the server is durable, private and as it should be', async () => {
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  const settings = `SELECT json_object_agg(name, setting) AS settings FROM pg_settings WHERE name IN (
    'fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums', 'listen_addresses', 'server_encoding',
    'unix_socket_permissions', 'jit')`
  expect((await query(server.connection, settings))[0]).toEqual({
    settings: {
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      data_checksums: 'on',
      listen_addresses: '',
      server_encoding: 'UTF8',
      unix_socket_permissions: '0700',
      jit: 'off',
    },
  })
  const locale = `SELECT datlocprovider, datlocale, datcollate FROM pg_database WHERE datname = '${NAME}'`
  expect(await query(server.connection, locale)).toEqual([
    { datlocprovider: 'b', datlocale: 'C.UTF-8', datcollate: 'C' },
  ])
  for (const inner of ['clients', 'postgres']) {
    expect((await stat(join(dataDir, inner))).mode & 0o077, inner).toBe(0)
  }
  expect((await stat(join(dataDir, 'postgres.log'))).mode & 0o077).toBe(0)
  await server.release()
})

test('what was written is there after a restart, also when the directory was moved in between', async () => {
  await trial.prepare(dataDir)
  const first = await startEmbeddedPostgres({ name: NAME, dataDir })
  await query(first.connection, 'CREATE TABLE kept AS SELECT 7 AS n')
  await first.release()
  const moved = join(home, 'moved')
  await rename(dataDir, moved)
  const second = await startEmbeddedPostgres({ name: NAME, dataDir: moved })
  expect(await query(second.connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  await second.release()
})

test('one process can hold it twice, and a second release of one does nothing', async () => {
  const [first, second] = await Promise.all([
    startEmbeddedPostgres({ name: NAME, dataDir }),
    startEmbeddedPostgres({ name: NAME, dataDir }),
  ])
  await Promise.all([first.release(), first.release()])
  await first.release()
  expect(await query(second.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await second.release()
  expect(await processesIn(home)).toEqual([])
})

test('a path that is too long for a socket works', async () => {
  vi.stubEnv('TMPDIR', home)
  const long = join(home, 'a-long-name-'.repeat(9), 'another-'.repeat(9))
  const server = await startEmbeddedPostgres({ name: NAME, dataDir: long })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  const link = join(server.connection.host, '../..')
  expect((await stat(link)).mode & 0o777).toBe(0o700)
  await server.release()
})

test('settings are those of this version at each start, and the operator’s own survive', async () => {
  await trial.prepare(dataDir)
  const first = await startEmbeddedPostgres({ name: NAME, dataDir })
  await query(first.connection, "ALTER SYSTEM SET work_mem = '9MB'")
  await query(first.connection, "ALTER SYSTEM SET listen_addresses = '127.0.0.1'")
  await first.release()
  await writeFile(join(dataDir, 'postgres/postgresql.conf'), 'fsync = off')
  const second = await startEmbeddedPostgres({ name: NAME, dataDir })
  const settings = `SELECT current_setting('fsync') AS fsync, current_setting('work_mem') AS work_mem,
    current_setting('listen_addresses') AS listen_addresses`
  expect(await query(second.connection, settings)).toEqual([
    { fsync: 'on', work_mem: '9MB', listen_addresses: '' },
  ])
  await second.release()
})

test('a large log begins anew and is kept once', async () => {
  await trial.prepare(dataDir)
  const log = join(dataDir, 'postgres.log')
  await truncate(log, 11 * 1024 * 1024)
  await (await startEmbeddedPostgres({ name: NAME, dataDir })).release()
  expect((await stat(`${log}.1`)).size).toBe(11 * 1024 * 1024)
  expect(await readFile(log, 'utf8')).toMatch(/^\d{4}.* starting PostgreSQL/)
})

test('Ctrl-C in the terminal of the process does not reach its server', async () => {
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir)
  const connection = await holder.connection()
  // The terminal signals the whole process group; the holder, like the service, goes on to drain.
  process.kill(-holder.child.pid!, 'SIGINT')
  expect(await query(connection, 'SELECT pg_sleep(0.2), 1 AS n')).toMatchObject([{ n: 1 }])
  await holder.release()
  expect(await processesIn(home)).toEqual([])
})

test('a data directory that is deleted under its server is no obstacle to release', async () => {
  await trial.prepare(dataDir)
  const server = await startEmbeddedPostgres({ name: NAME, dataDir })
  const [pid] = (await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')
  await rename(dataDir, join(home, 'gone'))
  await server.release()
  process.kill(Number(pid), 'SIGINT')
  await vi.waitUntil(async () => (await processesIn(home)).length === 0, { timeout: 10_000 })
})
