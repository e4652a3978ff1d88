import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { isAlive, postmasterPid, prepareDataDir } from '../harness/embedded_postgres.ts'

let directory: string
let npm: ChildProcess

beforeEach(async (context) => {
  context.skip(
    !inject('testServer').embedded,
    'the embedded PostgreSQL is tested in the run without TEST_DATABASE_URL',
  )
  directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
  await prepareDataDir(join(directory, 'data'))
})

afterEach(async () => {
  if (!directory) return
  try {
    process.kill(-npm.pid!, 'SIGKILL')
  } catch {
    // It has ended, as it should.
  }
  const pid = await postmasterPid(directory)
  if (pid !== undefined) process.kill(pid, 'SIGQUIT')
  await vi.waitFor(async () => expect(await postmasterPid(directory)).toBeUndefined(), { timeout: 20_000 })
  await rm(directory, { recursive: true, force: true })
})

/** `npm start` in a process group of its own, as a shell starts it. Returns the service's process, once it is ready. */
async function start(): Promise<{ service: number; output: () => string }> {
  const env = { ...process.env, BUILD_IS_CURRENT: '1', PORT: '0', ANNALS_DATA_DIR: join(directory, 'data') }
  npm = spawn('npm', ['start'], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [npm.stdout!, npm.stderr!]) stream.on('data', (text) => (output += text))
  await expect.poll(() => output).toContain('"msg":"Server listening')
  return { service: Number(/"pid":(\d+).*Server listening/.exec(output)![1]), output: () => output }
}

async function expectOrderlyEnd(service: number, output: () => string): Promise<void> {
  await expect.poll(() => isAlive(service)).toBe(false)
  expect(output()).toContain('answering the accepted requests, then stopping')
  // It has stopped its database itself, and removed this file.
  expect(await postmasterPid(directory)).toBeUndefined()
}

describe('npm start ends the service and its database in order', () => {
  it.for([
    ['Ctrl-C, which a terminal sends to both and npm passes on', 'SIGINT', -1],
    ['a signal to npm alone', 'SIGTERM', 1],
    ['the terminal was closed', 'SIGHUP', -1],
  ] as const)('after %s', async ([, signal, group]) => {
    const { service, output } = await start()
    process.kill(group * npm.pid!, signal)
    await expectOrderlyEnd(service, output)
  })

  it('after npm was killed', async () => {
    const { service, output } = await start()
    npm.kill('SIGKILL')
    await expectOrderlyEnd(service, output)
    expect(output()).toContain('npm has ended')
  })
})
