import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { openTail, type Tail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { type HttpClient, httpClient } from '../harness/http_client.ts'
import { createProject, expectOrderlyEnds, type Project } from '../harness/service.ts'
import { newSessionLog, sessionLog } from '../harness/session_log.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'
import { issueToken } from '../harness/tokens.ts'

const WORKERS = 2
/** For an append that is held: nothing hangs it up. */
const HELD = { ANNALS_COMMIT_MS_MAX: '60000' }

const nodes: AnnalsServer[] = []
const clients: HttpClient[] = []
const tails: Tail[] = []
let database: TestDatabase
let node: AnnalsServer
let project: Project
let api: ApiClient

async function start(more: Record<string, string> = {}): Promise<AnnalsServer> {
  const env = { DATABASE_URL: database.url, ANNALS_DATABASE_CONNECTIONS_MAX: '4', ...more }
  const started = await startServer(env, ['--workers', `${WORKERS}`])
  nodes.push(started)
  return started
}
function clientOf(url: string, token: string): ApiClient {
  const client = apiClient(url, token)
  clients.push(client)
  return client
}

beforeAll(async () => {
  database = await createTestDatabase()
  node = await start()
  const admin = httpClient(node.url, ADMIN_TOKEN)
  clients.push(admin)
  project = await createProject(admin)
  api = clientOf(node.url, project.token)
})
afterEach(() => {
  for (const tail of tails.splice(0)) tail.close()
})
afterAll(async () => {
  for (const client of clients) client.close()
  const ends = await Promise.all(nodes.map((one) => one.stop()))
  await database.drop()
  expectOrderlyEnds(ends)
})

/** Processes that have said that they listen, and live. */
function workersOf({ logLines }: AnnalsServer): number[] {
  const pids = logLines
    .filter((line) => line.includes('Server listening'))
    .map((line) => (JSON.parse(line) as { pid: number }).pid)
  return [...new Set(pids)].filter(isAlive)
}
/** The same, once each has said so: the log comes in pieces, a moment later. */
async function allWorkersOf(node: AnnalsServer): Promise<number[]> {
  await vi.waitFor(() => expect(workersOf(node)).toHaveLength(WORKERS), { timeout: 15_000 })
  return workersOf(node)
}
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
const newConnection = true
const asManyAs = <T>(count: number, ask: () => Promise<T>) => Promise.all(Array.from({ length: count }, ask))

/**
 * Whether nobody listens any more. It sends no request: one on a connection that comes while the last worker closes may
 * be kept by Node's cluster, which has nobody to give it to, until the process ends.
 */
function isRefused(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
  })
}

describe('annals serve --workers', () => {
  it('says once where it listens, and every worker answers there', async () => {
    expect(node.lines.filter((line) => line.includes('Annals is ready'))).toHaveLength(1)
    expect(node.lines).toContainEqual(expect.stringMatching(new RegExp(`^Data: .*, ${WORKERS} workers$`)))
    await allWorkersOf(node)
    const ids = (await asManyAs(30, () => api.createSession({}, { newConnection }))).map(
      (answer) => expectOk(answer, 201).id,
    )
    expect(new Set(ids).size).toBe(30)
    const answering = () =>
      new Set(
        node.logLines
          .filter((line) => line.includes('"POST"'))
          .map((line) => (JSON.parse(line) as { pid: number }).pid),
      )
    await vi.waitFor(() => expect(answering().size).toBe(WORKERS), { timeout: 15_000 })
  })

  it('counts in the metrics of any worker what all of them did', async () => {
    const route =
      'annals_http_request_duration_seconds_count{route="/api/v1/session/:session_id",method="GET"'
    const count = async () => {
      const { text } = await api.request('GET', '/metrics', { newConnection })
      const lines = text.split('\n').filter((line) => line.startsWith(route))
      expect(text.split('\n').filter((line) => line.startsWith('annals_build_info{'))).toHaveLength(1)
      expect(text).toMatch(/^annals_build_info\{.*\} 1$/m)
      return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    }
    const { id } = await newSessionLog(api)
    const before = await count()
    await asManyAs(30, () => api.request('GET', `/api/v1/session/${id}`, { newConnection }))
    expect(await asManyAs(6, count)).toEqual(Array(6).fill(before + 30))
  })

  it('brings what is appended at one worker to the tails at all of them', async () => {
    const log = await newSessionLog(api)
    for (let n = 0; n < 2 * WORKERS; n += 1) tails.push(await openTail(node.url, project.token, log.id, {}))
    for (let n = 0; n < 10; n += 1)
      expectOk(await api.appendEvent(log.id, { type: 'note', data: { n } }, { newConnection }))
    for (const tail of tails) await tail.received(10)
  })

  it('refuses a revoked token at all workers within five seconds', async () => {
    const admin = httpClient(node.url, ADMIN_TOKEN)
    clients.push(admin)
    const { id, token } = await issueToken(admin, project.id, { name: 'short-lived' })
    const statuses = () =>
      asManyAs(4 * WORKERS, async () => {
        const answer = await clientOf(node.url, token).request('GET', '/api/v1/session', { newConnection })
        return answer.status
      })
    expect(new Set(await statuses())).toEqual(new Set([200]))
    expectOk(await admin.request('DELETE', `/admin/v1/projects/${project.id}/tokens/${id}`))
    await vi.waitFor(async () => expect(new Set(await statuses())).toEqual(new Set([401])), {
      timeout: 5_000,
      interval: 100,
    })
  })

  it('goes on at the others when a worker is killed, and starts another in its place', async () => {
    const before = await allWorkersOf(node)
    const log = await newSessionLog(api)
    process.kill(before[0]!, 'SIGKILL')
    await vi.waitFor(() => expect(node.logLines.join()).toContain(`Worker ${before[0]} ended (SIGKILL)`), {
      timeout: 15_000,
    })
    for (let n = 0; n < 20; n += 1)
      expectOk(await api.appendEvent(log.id, { type: 'note', data: {} }, { newConnection }))
    await vi.waitFor(() => expect(workersOf(node)).toHaveLength(WORKERS), { timeout: 20_000 })
    expect(workersOf(node)).toEqual(expect.arrayContaining(before.slice(1)))
    expectOk(await api.getSession(log.id))
  })

  it('answers what it accepted when it is asked to stop, and ends with code 0', async () => {
    const stopping = await start(HELD)
    const client = clientOf(stopping.url, project.token)
    const log = await newSessionLog(client)
    const pids = await allWorkersOf(stopping)
    const answer = await whileSessionIsHeld(database.url, project.id, log.id, async (held) => {
      const append = log.addEvent()
      await held.waiting()
      const end = stopping.stop()
      await vi.waitFor(async () => expect(await isRefused(stopping.url)).toBe(true), { timeout: 15_000 })
      await held.release()
      expect((await end).code).toBe(0)
      return append
    })
    expectOk(answer)
    expect(pids.filter(isAlive)).toEqual([])
  })

  it('leaves no worker behind when the primary is killed, and answers what these had accepted', async () => {
    const doomed = await start(HELD)
    const client = clientOf(doomed.url, project.token)
    const log = await newSessionLog(client)
    const pids = await allWorkersOf(doomed)
    const answer = await whileSessionIsHeld(database.url, project.id, log.id, async (held) => {
      const append = log.addEvent()
      await held.waiting()
      process.kill(doomed.pid, 'SIGKILL')
      await vi.waitFor(() => expect(pids.filter(isAlive)).toHaveLength(1), { timeout: 15_000 })
      await held.release()
      return append
    })
    expectOk(answer)
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { timeout: 15_000 })
    await doomed.exited
    expect(expectOk(await sessionLog(api, log.id).timeline()).items).toHaveLength(1)
  })

  it('says once why it cannot start, and ends', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    const { port } = await new Promise<{ port: number }>((resolve) =>
      taken.once('listening', () => resolve(taken.address() as { port: number })),
    )
    const result = await runAnnals(['serve', '--workers', '2'], {
      DATABASE_URL: database.url,
      PORT: `${port}`,
    })
    taken.close()
    expect(result.code).toBe(1)
    expect(result.stderr.match(/Port \d+ on 127\.0\.0\.1 is taken/g)).toHaveLength(1)
    expect(result.stdout).toBe('')
  })

  it('says so if they cannot listen on any port of the address', async () => {
    const env = { DATABASE_URL: database.url, HOST: 'no-such-host.invalid', PORT: '0' }
    const { code, stderr } = await runAnnals(['serve', '--workers', '2'], env)
    expect(stderr).toContain('HOST no-such-host.invalid is not an address of this machine.')
    expect(code).toBe(1)
  })

  it('refuses more workers than the embedded database has connections for, and counts that are none', async () => {
    const result = await runAnnals(['serve', '--workers', '10'], {
      ANNALS_DATA_DIR: join(tmpdir(), 'annals-test-never-made'),
      PORT: '0',
    })
    expect(result.code).toBe(1)
    expect(result.stderr).toMatch(/^annals: 10 workers with 26 connections each are more than .* \(237\)/)
    for (const count of ['0', 'x', '-1'])
      expect((await runCommand(['serve', '--workers', count])).code).toBe(2)
    const alone = await runAnnals(['serve', '--worker'], { DATABASE_URL: database.url })
    expect(alone.code).toBe(1)
    expectError(await api.getSession('01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'), 404, 'session_not_found')
  })
})
