import { existsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Client } from '../src/client.js'
import { type DataDirectory, openDataDirectory } from '../src/data_directory.js'
import { NAME, Trial } from './trial.js'

// Windows renames a directory only to a name that is free.
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>()
  const rename = async (from: string, to: string) => {
    if (existsSync(to)) throw Object.assign(new Error(`EEXIST: ${from} -> ${to}`), { code: 'EEXIST' })
    await fs.rename(from, to)
  }
  return { ...fs, rename }
})

let trial: Trial
let directory: DataDirectory

beforeEach(async (context) => {
  trial = new Trial()
  context.skip(process.platform === 'darwin', 'macOS has no names in place of the files of sockets')
  directory = await openDataDirectory(join(await trial.directory(), 'annals'), NAME, 'tcp')
})

afterEach(() => trial.end())

const joined = () => Client.join(directory, directory.path)
const quiet = () => {}

test('where a lock can only be taken while there is none, an empty one is taken away', async () => {
  const client = await joined()
  await mkdir(directory.lock)
  expect(await client.whileLocked(async () => 'held', quiet)).toBe('held')
  expect(existsSync(directory.lock)).toBe(false)
  await client.leave(async () => {}, quiet)
  expect(await readdir(directory.path)).toEqual(['clients'])
})

test('there, the lock of one that is gone is taken from it', async () => {
  const gone = await joined()
  const client = await joined()
  await new Promise<void>((held) => {
    const holdForEver = () => {
      held()
      return new Promise(quiet)
    }
    void gone.whileLocked(holdForEver, quiet)
  })
  gone.abandon()
  expect(await client.whileLocked(() => readdir(directory.clients), quiet)).toEqual([])
  await client.leave(async () => {}, quiet)
})

test('there, many take turns, one at a time, and the last to leave knows it', async () => {
  const clients = await Promise.all(Array.from({ length: 5 }, joined))
  let inside = 0
  let most = 0
  let last = 0
  const work = async () => {
    most = Math.max(most, ++inside)
    await new Promise((done) => setTimeout(done, 2))
    inside--
  }
  const turns = clients.map(async (client) => {
    for (let turn = 0; turn < 4; turn++) await client.whileLocked(work, quiet)
    await client.leave(async () => void last++, quiet)
  })
  await Promise.all(turns)
  expect({ most, last }).toEqual({ most: 1, last: 1 })
  expect(await readdir(directory.clients)).toEqual([])
  await rm(directory.path, { recursive: true })
})
