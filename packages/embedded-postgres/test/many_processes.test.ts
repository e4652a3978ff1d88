import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startEmbeddedPostgres } from '../src/embedded_postgres.js'
import { NAME, processesIn, query, Trial } from './trial.js'

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

test('the first to leave leaves the server to the second, and the second stops it', async () => {
  const first = trial.hold(dataDir)
  await first.connection()
  const second = trial.hold(dataDir)
  const connection = await second.connection()
  expect(second.sentences).toEqual([])
  await first.release()
  expect(await query(connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await second.release()
  expect(await processesIn(home)).toEqual([])
})

test('one that was killed does not count as a user of the server', async () => {
  await trial.prepare(dataDir)
  const first = trial.hold(dataDir)
  const second = trial.hold(dataDir)
  await Promise.all([first.connection(), second.connection()])
  await first.killed()
  await second.release()
  expect(await processesIn(home)).toEqual([])
})

test('one that arrives while the last one leaves has a server that answers', async () => {
  await trial.prepare(dataDir)
  let leaving = await startEmbeddedPostgres({ name: NAME, dataDir })
  for (let round = 0; round < 12; round++) {
    const left = leaving.release()
    await sleep(round)
    const [arrived] = await Promise.all([startEmbeddedPostgres({ name: NAME, dataDir }), left])
    expect(await query(arrived.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
    leaving = arrived
  }
  await leaving.release()
  expect(await processesIn(home)).toEqual([])
})

test('six processes that come and go at random moments can each query, and none leaves a server', async () => {
  const rounds = 3
  const live = async (name: number) => {
    for (let round = 0; round < rounds; round++) {
      await sleep(Math.random() * 300)
      const holder = trial.hold(dataDir)
      const connection = await holder.connection()
      await query(connection, 'CREATE TABLE IF NOT EXISTS visits (name integer, round integer)').catch(
        // Two that create it at once: PostgreSQL lets one of them win and tells the other.
        () => {},
      )
      await query(connection, `INSERT INTO visits VALUES (${name}, ${round})`)
      await sleep(Math.random() * 200)
      if (Math.random() < 0.2) await holder.killed()
      else await holder.release()
    }
  }
  await Promise.all([1, 2, 3, 4, 5, 6].map(live))
  const last = await startEmbeddedPostgres({ name: NAME, dataDir })
  expect(await query(last.connection, 'SELECT count(*)::integer AS visits FROM visits')).toEqual([
    { visits: 6 * rounds },
  ])
  await last.release()
  expect(await processesIn(home)).toEqual([])
  expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).not.toMatch(/PANIC|not properly shut down/)
})
