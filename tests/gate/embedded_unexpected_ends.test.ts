import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { runAnnals, startServer } from '../harness/annals_process.ts'
import { isAlive, postmasterPid, prepareDataDir } from '../harness/embedded_postgres.ts'

// A preload for the process under test: an error that nobody catches, when it is asked for, after which the process
// needs two seconds to end, as it may where its threads are busy.
const THROWS_WHEN_ASKED = `--import=data:text/javascript,${encodeURIComponent(
  `process.on('SIGUSR2', () => {
    process.on('exit', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000))
    throw new Error('nobody catches this')
  })`,
)}`

let directory: string
let env: Record<string, string>

beforeEach(async (context) => {
  context.skip(
    !inject('testServer').embedded,
    'the embedded PostgreSQL is tested in the run without TEST_DATABASE_URL',
  )
  directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
  env = { ANNALS_DATA_DIR: join(directory, 'data') }
  await prepareDataDir(env.ANNALS_DATA_DIR!)
})

afterEach(async () => {
  if (!directory) return
  const pid = await postmasterPid(directory)
  if (pid !== undefined) process.kill(pid, 'SIGQUIT')
  await vi.waitFor(async () => expect(await postmasterPid(directory)).toBeUndefined(), { timeout: 20_000 })
  await rm(directory, { recursive: true, force: true })
})

async function expectStopped(pid: number | undefined): Promise<void> {
  expect(pid).toBeDefined()
  await vi.waitFor(() => expect(isAlive(pid!)).toBe(false), { timeout: 20_000, interval: 50 })
}

describe('the embedded PostgreSQL stops with its last process', () => {
  it('when an error that nobody caught ended it', async () => {
    const node = await startServer({ ...env, NODE_OPTIONS: THROWS_WHEN_ASKED })
    const pid = await postmasterPid(directory)
    process.kill(node.pid, 'SIGUSR2')
    expect((await node.exited).stderr).toContain('nobody catches this')
    await expectStopped(pid)
    expect((await runAnnals(['project', 'list'], env)).code).toBe(0)
  })

  it('when a second signal ended it at once', async () => {
    const node = await startServer(env)
    const pid = await postmasterPid(directory)
    process.kill(node.pid, 'SIGTERM')
    process.kill(node.pid, 'SIGINT')
    await node.exited
    await expectStopped(pid)
  })

  it('and not while another process uses it', async () => {
    const [first, second] = await Promise.all([
      startServer({ ...env, NODE_OPTIONS: THROWS_WHEN_ASKED }),
      startServer(env),
    ])
    const pid = await postmasterPid(directory)
    process.kill(first.pid, 'SIGUSR2')
    await first.exited
    expect((await runAnnals(['project', 'list'], env)).code).toBe(0)
    expect(isAlive(pid!)).toBe(true)
    expect(await postmasterPid(directory)).toBe(pid)
    expect((await second.stop()).code).toBe(0)
    await expectStopped(pid)
  })
})
