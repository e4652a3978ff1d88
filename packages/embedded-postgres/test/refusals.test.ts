import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDataDirectory } from '../src/data_directory.js'
import { startEmbeddedPostgres } from '../src/embedded_postgres.js'
import { findEngine } from '../src/engine.js'
import { EmbeddedPostgresError } from '../src/failures.js'
import { bringUp } from '../src/postmaster.js'
import { chooseAccount } from '../src/run_program.js'
import { IS_ROOT, installElsewhere, NAME, NOBODY, PACKAGE, processesIn, query, Trial } from './trial.js'

let trial: Trial
let home: string
let dataDir: string

beforeEach(async () => {
  trial = new Trial()
  home = await trial.directory()
  dataDir = join(home, 'annals')
})

afterEach(() => trial.end())

async function refusal(directory: string): Promise<string> {
  const error = await startEmbeddedPostgres({ name: NAME, dataDir: directory }).then(
    async (server) => {
      await server.release()
      return new Error('It started.')
    },
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(EmbeddedPostgresError)
  return (error as EmbeddedPostgresError).message
}

test('a data directory that is a file is named', async () => {
  await writeFile(dataDir, 'a file')
  expect(await refusal(dataDir)).toMatch(`${dataDir} is not a directory`)
  expect(await refusal(join(dataDir, 'below'))).toMatch(/is not a directory: .*choose a/)
})

test('data of another major version is left alone, and both versions are named', async () => {
  await trial.prepare(dataDir)
  await writeFile(join(dataDir, 'postgres/PG_VERSION'), '17\n')
  expect(await refusal(dataDir)).toMatch(/written by PostgreSQL 17 and this is PostgreSQL 18: .*use a/)
})

test('damaged data is called damaged, and nothing is created over it', async () => {
  await trial.prepare(dataDir)
  const cluster = join(dataDir, 'postgres')
  await rename(join(cluster, 'global'), join(home, 'global'))
  expect(await refusal(dataDir)).toMatch(
    /damaged \(global\/pg_control is missing\): restore it from a backup/,
  )
  await rename(join(home, 'global'), join(cluster, 'global'))
  await rename(join(cluster, 'PG_VERSION'), join(home, 'PG_VERSION'))
  expect(await refusal(dataDir)).toMatch(/damaged \(PG_VERSION is missing\)/)
  await rename(join(home, 'PG_VERSION'), join(cluster, 'PG_VERSION'))
  await (await startEmbeddedPostgres({ name: NAME, dataDir })).release()
})

test('why PostgreSQL gave up is quoted from its log, and no process stays', async () => {
  await trial.prepare(dataDir)
  await rm(join(dataDir, 'postgres/pg_wal'), { recursive: true })
  const message = await refusal(dataDir)
  expect(message).toMatch(/^PostgreSQL could not start \((FATAL|PANIC): .*pg_wal.*\): see .*postgres\.log/)
  expect(await processesIn(home)).toEqual([])
})

test('a server that lives and never answers is given up, with the last of its log', async () => {
  await trial.prepare(dataDir)
  const directory = await openDataDirectory(dataDir, NAME, 'sockets')
  const stuck = spawn('sleep', ['60'], { cwd: directory.cluster, stdio: 'ignore' })
  await writeFile(join(directory.cluster, 'postmaster.pid'), `${stuck.pid}\n`)
  const account = await chooseAccount([directory])
  const place = { directory, reach: directory.path, account, say: () => {} }
  const engine = await findEngine(directory, account, place.say)
  await expect(bringUp(place, engine, 300)).rejects.toThrow(
    /did not start within 0.3 s; its log .*postgres\.log ends with "LOG: {2}database system is shut down"/,
  )
  expect(stuck.exitCode, 'what it did not start it does not end').toBe(null)
  const ended = once(stuck, 'exit')
  stuck.kill('SIGKILL')
  await ended
})

test('a missing package is named, with the way around it', async () => {
  const place = await trial.directory()
  const dist = await installElsewhere(place)
  const holder = trial.hold(dataDir, { dist })
  expect(await holder.outcome).toMatch(`EmbeddedPostgresError The npm package ${PACKAGE}`)
  expect(await holder.outcome).toMatch(/is not installed: .*use a/)
})

test.runIf(IS_ROOT)('a directory of another user is refused with the owner’s name', async () => {
  await chmod(home, 0o711)
  await trial.prepare(dataDir)
  const holder = trial.hold(dataDir, { account: NOBODY })
  expect(await holder.outcome).toMatch(
    /^EmbeddedPostgresError .* belongs to root and nobody cannot use it: start as its owner/,
  )
})

test.runIf(!IS_ROOT)('a directory that cannot be written to is refused', async () => {
  const closed = join(home, 'closed')
  await mkdir(closed, { mode: 0o500 })
  expect(await refusal(join(closed, 'annals'))).toMatch(/cannot write to it: .*choose a/)
})

const canMount = IS_ROOT && process.platform === 'linux' && tryMount()

function tryMount(): boolean {
  const options = { encoding: 'utf8' } as const
  return spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], options).status === 0
}

// Needs a disk that can be filled: a small one in memory, which only root may mount.
test.runIf(canMount)('a full disk is called full, when creating and when starting', async () => {
  await mkdir(dataDir)
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'annals-test', dataDir]).status).toBe(0)
  try {
    expect(await refusal(dataDir)).toMatch(/The disk that holds .* is full: free some space/)
    expect(spawnSync('mount', ['-o', 'remount,size=120m', dataDir]).status).toBe(0)
    const server = await startEmbeddedPostgres({ name: NAME, dataDir })
    await query(server.connection, 'CREATE TABLE kept AS SELECT 7 AS n')
    const filler = join(dataDir, 'filler')
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k'])
    await server.release()
    expect(await processesIn(home), 'a full disk does not keep it from stopping').toEqual([])
    expect(await refusal(dataDir)).toMatch(/The disk that holds .* is full: free some space/)
    await rm(filler)
    const again = await startEmbeddedPostgres({ name: NAME, dataDir })
    expect(await query(again.connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
    await again.release()
  } finally {
    spawnSync('umount', ['-l', dataDir])
  }
})
