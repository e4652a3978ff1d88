import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { isAlive, postmasterPid, prepareDataDir } from '../harness/embedded_postgres.ts'
import { expectOk } from '../harness/expectations.ts'
import { expectOrderlyEnds } from '../harness/service.ts'

const KEY = 'key-of-the-embedded-database-tests-0123456789'

let directory: string
let dataDir: string
let nodes: AnnalsServer[]
let clients: ApiClient[]

beforeEach(async (context) => {
  context.skip(
    !inject('testServer').embedded,
    'the embedded PostgreSQL is tested in the run without TEST_DATABASE_URL',
  )
  directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
  dataDir = join(directory, 'data')
  await prepareDataDir(dataDir)
  nodes = []
  clients = []
})

afterEach(async () => {
  for (const client of clients ?? []) client.close()
  const ends = await Promise.all((nodes ?? []).map((node) => node.stop()))
  if (directory) await rm(directory, { recursive: true, force: true })
  expectOrderlyEnds(ends)
})

async function start(): Promise<{ node: AnnalsServer; api: ApiClient }> {
  const node = await startServer({ ANNALS_DATA_DIR: dataDir, ANNALS_API_KEY: KEY })
  const api = apiClient(node.url, KEY)
  nodes.push(node)
  clients.push(api)
  return { node, api }
}

async function appendSome(api: ApiClient, sessionId: string, count: number) {
  const calls = Array.from({ length: count }, (_, index) =>
    api.appendEvent(sessionId, { type: 'note', data: { index } }),
  )
  return (await Promise.all(calls)).map((answer) => expectOk(answer))
}

describe('the embedded PostgreSQL', () => {
  it.each([['export'], ['backup', 'all.ndjson'], ['verify'], ['token', 'list'], ['demo']])(
    'is not created by `annals %s`, which says so',
    async (...command) => {
      dataDir = join(directory, 'none')
      const env = { ANNALS_DATA_DIR: dataDir, XDG_CONFIG_HOME: directory }
      const { code, stderr } = await runCommand(command, env)
      expect({ code, stderr }).toEqual({
        code: 5,
        stderr: expect.stringContaining('no embedded database in'),
      })
      expect(existsSync(dataDir)).toBe(false)
    },
  )

  it('keeps what was stored from one start to the next, and stops with its service', async () => {
    dataDir = join(directory, 'new')
    const first = await start()
    const session = expectOk(await first.api.createSession({ user: 'ada' }), 201)
    const pid = await postmasterPid(directory)
    expect(pid).toBeDefined()
    expect((await first.node.stop()).code).toBe(0)
    expect(isAlive(pid!)).toBe(false)
    const second = await start()
    expect(expectOk(await second.api.getSession(session.id))).toEqual(session)
  })

  it('killed with kill -9, service and all, has every answered event after a restart', async () => {
    const first = await start()
    const { id } = expectOk(await first.api.createSession({}), 201)
    const events = await appendSome(first.api, id, 40)
    const pid = await postmasterPid(directory)
    process.kill(pid!, 'SIGKILL')
    await first.node.kill()
    const second = await start()
    const stored = expectOk(await second.api.listEvents(id)).items
    expect(stored).toEqual([...events].sort((a, b) => a.seq - b.seq))
    expect(stored.map((event) => event.seq)).toEqual(stored.map((_, index) => index + 1))
  })

  it('killed under a running service comes back without a hand', async () => {
    const { api } = await start()
    const { id } = expectOk(await api.createSession({}), 201)
    const [event] = await appendSome(api, id, 1)
    const killed = (await postmasterPid(directory))!
    process.kill(killed, 'SIGKILL')
    // Sessions of the killed server may live on for a moment and still answer.
    const patience = { timeout: 20_000, interval: 100 }
    await vi.waitFor(
      async () => expect([undefined, killed]).not.toContain(await postmasterPid(directory)),
      patience,
    )
    await vi.waitFor(async () => expectOk(await api.appendEvent(id, { type: 'after', data: {} })), patience)
    const stored = await vi.waitFor(async () => expectOk(await api.listEvents(id)).items, patience)
    expect(stored[0]).toEqual(event)
    expect(stored.map((item) => item.seq)).toEqual(stored.map((_, index) => index + 1))
  })

  it('serves the commands while no service runs, and stops after them', async () => {
    const env = { ANNALS_DATA_DIR: dataDir }
    const created = await runAnnals(['project', 'create', 'from-the-command-line', '--json'], env)
    expect(created.code, created.stderr).toBe(0)
    const set = await runAnnals(['project', 'set', '--max-tails', '3', '--json'], env)
    expect(JSON.parse(set.stdout)).toMatchObject({ name: 'from-the-command-line', max_tails: 3 })
    const listed = await runAnnals(['project', 'list', '--json'], env)
    expect(listed.stdout).toContain('from-the-command-line')
    expect(await postmasterPid(directory)).toBeUndefined()
  })
})
