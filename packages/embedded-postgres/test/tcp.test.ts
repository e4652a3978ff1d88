import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openDataDirectory, transportOf } from '../src/data_directory.js'
import { startOver, stopUnused } from '../src/embedded_postgres.js'
import { findEngine, packageFor } from '../src/engine.js'
import { bringUp } from '../src/postmaster.js'
import { pipeOf, someoneListensOn } from '../src/presence.js'
import { describeRemains } from '../src/remains.js'
import { chooseAccount } from '../src/run_program.js'
import { shortPathTo } from '../src/short_path.js'
import { eventually, type Holder, NAME, processesIn, query, Trial } from './trial.js'

// The way that Windows takes, on this system: a port with a password, pg_ctl, and names in place of sockets' files.
vi.setConfig({ testTimeout: 120_000 })

let trial: Trial
let home: string
let dataDir: string

beforeEach(async (context) => {
  trial = new Trial()
  context.skip(process.platform === 'darwin', 'macOS has no names in place of the files of sockets')
  home = await trial.directory()
  dataDir = join(home, 'annals')
})

afterEach(() => trial.end())

const start = () => startOver('tcp', { name: NAME, dataDir })
const hold = (): Holder => trial.hold(dataDir, { transport: 'tcp' })
const read = (name: string) => readFile(join(dataDir, 'postgres', name), 'utf8')
const postmasterPid = async () => Number((await read('postmaster.pid')).split('\n')[0])

test('a server on a port is private, durable, shared, and stopped by the last process', async () => {
  const first = hold()
  const connection = await first.connection()
  expect(first.sentences).toEqual([
    `Creating the database in ${dataDir}`,
    expect.stringMatching(/^Starting PostgreSQL 18/),
  ])
  const second = await start()
  expect(second.connection).toEqual(connection)
  const settings = `SELECT current_setting('listen_addresses') AS listen_addresses, current_setting('fsync') AS fsync,
    current_setting('unix_socket_directories') AS sockets, current_setting('wal_sync_method') AS wal_sync_method`
  expect(await query(connection, settings)).toEqual([
    { listen_addresses: '127.0.0.1', fsync: 'on', sockets: '', wal_sync_method: 'fsync' },
  ])
  expect((await stat(join(dataDir, 'postgres/password'))).mode & 0o077).toBe(0)
  await first.release()
  expect(await query(second.connection, 'SELECT current_user')).toEqual([{ current_user: NAME }])
  await second.release()
  expect(await processesIn(home)).toEqual([])
  expect((await readdir(dataDir)).sort()).toEqual(['clients', 'postgres', 'postgres.log'])
  expect(await readdir(join(dataDir, 'clients'))).toEqual([])
})

test('nobody gets in without the password, nor from another address', async () => {
  await trial.prepare(dataDir, 'tcp')
  const { connection, release } = await start()
  for (const password of [undefined, '', 'wrong', `${connection.password}x`])
    await expect(query({ ...connection, password: password! }, 'SELECT 1')).rejects.toThrow(/password/)
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  for (const { address, family, scopeid } of addresses.filter(({ address }) => address !== connection.host)) {
    const host = family === 'IPv6' && scopeid ? `${address}%${scopeid}` : address
    await expect(query({ ...connection, host }, 'SELECT 1'), host).rejects.toThrow(/ECONNREFUSED|EINVAL|ENET/)
  }
  await release()
})

test('a process whose server is killed brings it back on the port that its connections know', async () => {
  await trial.prepare(dataDir, 'tcp')
  const server = await start()
  await query(server.connection, 'CREATE TABLE kept AS SELECT 7 AS n')
  const pid = await postmasterPid()
  process.kill(pid, 'SIGKILL')
  await eventually(async () => (await postmasterPid().catch(() => pid)) !== pid)
  const rows = await eventually(() => query(server.connection, 'SELECT n FROM kept').catch(() => undefined))
  expect(rows).toEqual([{ n: 7 }])
  await server.release()
  expect(await processesIn(home)).toEqual([])
})

test('a server whose process was killed is found, used again and stopped, and the lock is free', async () => {
  await trial.prepare(dataDir, 'tcp')
  const holder = hold()
  await query(await holder.connection(), 'CREATE TABLE kept AS SELECT 7 AS n')
  const pid = await postmasterPid()
  await holder.killed()
  expect(await describeRemains(dataDir, NAME, 'tcp')).toEqual([
    '1 killed processes are still registered',
    `its PostgreSQL is running (process ${pid}), but nobody uses it`,
  ])
  const starting = hold()
  await starting.killed()
  const server = await start()
  expect(await postmasterPid()).toBe(pid)
  expect(await query(server.connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  await server.release()
  expect(await processesIn(home)).toEqual([])
})

test('what both have left behind is recovered, and another program on the port is not taken for the server', async () => {
  await trial.prepare(dataDir, 'tcp')
  const holder = hold()
  const { port } = await holder.connection()
  await holder.killed()
  process.kill(await postmasterPid(), 'SIGKILL')
  const stranger = await eventually(() => listen(port))
  const server = await start()
  expect(server.connection.port).not.toBe(port)
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  stranger.close()
  await server.release()
  expect(await processesIn(home)).toEqual([])
})

test('a process whose server lost its port to another program says so', async () => {
  await trial.prepare(dataDir, 'tcp')
  const holder = hold()
  const { port } = await holder.connection()
  process.kill(await postmasterPid(), 'SIGKILL')
  const stranger = await eventually(() => listen(port))
  await eventually(async () => holder.sentences.some((said) => said.includes('took the port')))
  stranger.close()
  await holder.release()
  expect(await processesIn(home)).toEqual([])
})

function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', () => resolve(undefined))
    server.listen({ port, host: '127.0.0.1' }, () => resolve(server))
  })
}

test('one that arrives while the last one leaves has a server that answers', async () => {
  await trial.prepare(dataDir, 'tcp')
  let leaving = await start()
  for (let round = 0; round < 6; round++) {
    const [arrived] = await Promise.all([start(), leaving.release()])
    expect(await query(arrived.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
    leaving = arrived
  }
  await leaving.release()
  expect(await processesIn(home)).toEqual([])
})

test('what nobody uses is stopped', async () => {
  await trial.prepare(dataDir, 'tcp')
  const holder = hold()
  await holder.connection()
  await holder.killed()
  await stopUnused(dataDir, NAME, 'tcp')
  expect(await processesIn(home)).toEqual([])
})

test('why PostgreSQL gave up is quoted from its log, and no process stays', async () => {
  await trial.prepare(dataDir, 'tcp')
  await writeFile(join(dataDir, 'postgres/postgresql.auto.conf'), "max_connections = 'many'\n")
  await expect(start()).rejects.toThrow(
    /^PostgreSQL could not start \(.*configuration.*\): see .*postgres\.log/,
  )
  expect(await processesIn(home)).toEqual([])
})

test('a server that never answers is given up, and ended', async () => {
  await trial.prepare(dataDir, 'tcp')
  const directory = await openDataDirectory(dataDir, NAME, 'tcp')
  const { uid, gid } = await stat(directory.cluster)
  // A standby that nobody may read from waits for ever.
  await writeFile(join(directory.cluster, 'standby.signal'), '')
  await writeFile(join(directory.cluster, 'postgresql.auto.conf'), 'hot_standby = off\n')
  const account = await chooseAccount([{ uid, gid }])
  const place = { directory, reach: dataDir, account, say: () => {} }
  const engine = await findEngine(directory, account, place.say)
  await expect(bringUp(place, engine, 1000)).rejects.toThrow(/did not start within 1 s; its log .* ends with/)
  expect(await processesIn(home)).toEqual([])
})

test('data of a socket stays with its socket', async () => {
  await trial.prepare(dataDir)
  const { connection, release } = await startOver('sockets', { name: NAME, dataDir })
  expect(connection).toEqual({ host: `${dataDir}/postgres`, port: 5432, database: NAME, user: NAME })
  await release()
  await expect(start()).rejects.toThrow(/has no file "password"/)
  expect(await processesIn(home)).toEqual([])
})

test('names are those of the platform', async () => {
  expect(transportOf('win32')).toBe('tcp')
  expect(transportOf('linux')).toBe('sockets')
  expect(packageFor('win32', 'x64')).toBe('@embedded-postgres/windows-x64')
  expect(pipeOf('annals', '12-ab', 'win32')).toBe('\\\\.\\pipe\\annals-12-ab')
  expect(await someoneListensOn(pipeOf('annals', '12-ab', process.platform))).toBe(false)
})

test('a path too long for PostgreSQL on Windows is refused before anything is made', async () => {
  const path = 'C:\\Users\\Jörg Müller\\'
  const place = { path, name: NAME, transport: 'tcp' } as const
  expect(await shortPathTo(place)).toBe(path)
  await expect(shortPathTo({ ...place, path: path + 'a'.repeat(180) })).rejects.toThrow(/is too long: choose/)
  expect((await openDataDirectory(dataDir, NAME, 'tcp')).transport).toBe('tcp')
})
