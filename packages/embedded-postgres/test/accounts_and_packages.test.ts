import { spawnSync } from 'node:child_process'
import { chmod, chown, lstat, mkdir, readdir, rm, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startEmbeddedPostgres } from '../src/embedded_postgres.js'
import {
  IS_ROOT,
  IS_THOROUGH,
  installElsewhere,
  NAME,
  NOBODY,
  PACKAGE,
  processesIn,
  query,
  Trial,
} from './trial.js'

vi.setConfig({ testTimeout: 120_000 })

let trial: Trial
let home: string
let dataDir: string

beforeEach(async () => {
  trial = new Trial()
  home = await trial.directory()
  dataDir = join(home, 'annals')
  // The data can be reached by everybody unless a test closes it, and then a copy of PostgreSQL lies there.
  await chmod(home, 0o755)
})

afterEach(() => trial.end())

const ONE = [{ n: 1 }]

test('links that npm did not make are made in the package if it is ours', async () => {
  const dist = await installElsewhere(await trial.directory(), async () => {})
  const holder = trial.hold(dataDir, { dist })
  // As root, the package is in a directory of mode 0700, so it is copied as well.
  expect(await query(await holder.connection(), 'SELECT 1 AS n')).toEqual(ONE)
  await holder.release()
  const library = join(dist, '../node_modules', PACKAGE, 'native/lib')
  expect((await readdir(library)).some((name) => /^libpq\.(so|dylib)$|^libpq\.5\.dylib$/.test(name))).toBe(
    true,
  )
})

test.runIf(IS_THOROUGH)('two processes that make the links at once do not disturb each other', async () => {
  const dist = await installElsewhere(await trial.directory(), async () => {})
  const holders = [1, 2].map((n) => trial.hold(join(home, `annals-${n}`), { dist }))
  for (const holder of holders) expect(await query(await holder.connection(), 'SELECT 1 AS n')).toEqual(ONE)
  await Promise.all(holders.map((holder) => holder.release()))
})

test.runIf(IS_THOROUGH)('a package without links that is not ours is copied once', async () => {
  const place = await trial.directory()
  const dist = await installElsewhere(place, async (root) => {
    if (!IS_ROOT) await chmod(join(root, 'native/lib'), 0o500)
  })
  const account = IS_ROOT ? { account: NOBODY } : {}
  await chmod(place, 0o755)
  await mkdir(dataDir, { mode: 0o700 })
  if (IS_ROOT) await chown(dataDir, NOBODY.uid, NOBODY.gid)
  const first = trial.hold(dataDir, { dist, ...account })
  expect(await query(await first.connection(), 'SELECT 1 AS n')).toEqual(ONE)
  expect(first.sentences[0]).toMatch(`Copying PostgreSQL to ${dataDir}/postgresql-`)
  await first.release()
  const second = trial.hold(dataDir, { dist, ...account })
  await second.connection()
  expect(second.sentences).toEqual([expect.stringMatching(/^Starting PostgreSQL/)])
  await second.release()
  await chmod(join(dist, '../node_modules', PACKAGE, 'native/lib'), 0o700)
})

test.runIf(IS_THOROUGH)('a copy that is damaged is made again', async () => {
  const place = await trial.directory()
  const dist = await installElsewhere(place, async (root) => {
    // A link that leads nowhere cannot be replaced by a right one: as if the package were not ours.
    await symlink('nowhere', join(root, 'native/lib/libicuuc.so.60'))
  })
  await chmod(place, 0o755)
  const first = trial.hold(dataDir, { dist })
  await first.connection()
  await first.release()
  const copy = (await readdir(dataDir)).find((name) => name.startsWith('postgresql-'))!
  await rm(join(dataDir, copy, 'native/lib/libpq.so.5'))
  await rm(join(dataDir, copy, 'native/lib/libxml2.so.2'))
  const second = trial.hold(dataDir, { dist })
  expect(await query(await second.connection(), 'SELECT 1 AS n')).toEqual(ONE)
  await second.release()
})

test.runIf(IS_ROOT)('root has a server below a directory that is closed to everybody else', async () => {
  const closed = join(home, 'closed')
  await mkdir(closed, { mode: 0o700 })
  const deep = join(closed, 'project/.annals')
  const server = await startEmbeddedPostgres({ name: NAME, dataDir: deep })
  expect(await query(server.connection, 'SELECT 1 AS n')).toEqual(ONE)
  const pids = await processesIn(home)
  const { stdout } = spawnSync('ps', ['-o', 'uid=', '-p', pids.join(',')], { encoding: 'utf8' })
  expect(stdout.trim().split(/\s+/), 'none runs as root').not.toContain('0')
  expect((await stat(closed)).mode & 0o777, 'and the directory stays closed').toBe(0o700)
  await server.release()
  expect(await processesIn(home)).toEqual([])
})

test.runIf(IS_ROOT && IS_THOROUGH)(
  'root has a server though the package is closed to everybody else',
  async () => {
    const place = await trial.directory()
    const dist = await installElsewhere(place, async () => {})
    const holder = trial.hold(dataDir, { dist })
    expect(await query(await holder.connection(), 'SELECT 1 AS n')).toEqual(ONE)
    expect(holder.sentences[0]).toMatch('Copying PostgreSQL')
    expect((await stat(place)).mode & 0o777).toBe(0o700)
    await holder.release()
  },
)

test.runIf(IS_ROOT && IS_THOROUGH)(
  'root has a server though both, as below /root, are closed to everybody else',
  async () => {
    const cache = `/var/cache/${NAME}`
    const wasThere = await stat(cache).catch(() => undefined)
    const place = await trial.directory()
    const dist = await installElsewhere(place, async () => {})
    try {
      const holder = trial.hold(join(place, '.annals'), { dist })
      expect(await query(await holder.connection(), 'SELECT 1 AS n')).toEqual(ONE)
      await holder.release()
    } finally {
      if (!wasThere) await rm(cache, { recursive: true, force: true })
    }
  },
)

test.runIf(IS_ROOT)('what root does in a user’s directory does not lock the user out', async () => {
  await mkdir(dataDir, { mode: 0o700 })
  await chown(dataDir, NOBODY.uid, NOBODY.gid)
  const asRoot = trial.hold(dataDir)
  await query(await asRoot.connection(), 'CREATE TABLE kept AS SELECT 7 AS n')
  const asUser = trial.hold(dataDir, { account: NOBODY })
  const connection = await asUser.connection()
  await asRoot.killed()
  expect(await query(connection, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  await asUser.release()
  expect(await processesIn(home)).toEqual([])
  const again = trial.hold(dataDir, { account: NOBODY })
  await again.connection()
  await again.release()
})

test.runIf(IS_ROOT)(
  'data that root restored from a backup is handed to the account that runs it',
  async () => {
    await trial.prepare(dataDir)
    const restored = join(home, 'restored')
    expect(spawnSync('cp', ['-r', dataDir, restored]).status).toBe(0)
    expect((await lstat(join(restored, 'postgres/PG_VERSION'))).uid).toBe(0)
    const server = await startEmbeddedPostgres({ name: NAME, dataDir: restored })
    expect(await query(server.connection, 'SELECT 1 AS n')).toEqual(ONE)
    await server.release()
  },
)
