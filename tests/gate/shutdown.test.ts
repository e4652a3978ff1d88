import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient, type SessionEvent } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { readAnswer } from '../harness/http_client.ts'
import { rawConnection, readRawAnswer } from '../harness/raw_connection.ts'
import { useService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const SHUTDOWN_MS_MAX = 10_000

const service = useService()

/** An append whose headers the server has read: it sent `100 Continue`. The body follows with `send`. */
async function acceptedAppend(url: string, token: string, sessionId: string, index: number) {
  const body = JSON.stringify({ type: 'accepted', data: { index } })
  const target = `${url}/api/v1/session/${sessionId}/events`
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    Expect: '100-continue',
  }
  const append: ClientRequest = request(target, { method: 'POST', headers, agent: false })
  const answered = once(append, 'response').then(([response]) =>
    readAnswer<SessionEvent>(response as IncomingMessage),
  )
  append.flushHeaders()
  await once(append, 'continue')
  append.end(body)
  return { answered }
}

/** A connection with a request that has begun, so that it is not idle, and lacks its end. */
async function halfSent(url: string, path: string) {
  const connection = await rawConnection(url)
  connection.socket.write(`GET ${path} HTTP/1.1\r\n`)
  return connection
}

async function refusesConnections(url: string): Promise<void> {
  const { hostname, port } = new URL(url)
  await vi.waitFor(
    async () => {
      const socket = connect(Number(port), hostname)
      const refused = await Promise.race([
        once(socket, 'connect').then(() => false),
        once(socket, 'error').then(() => true),
      ]).catch(() => true)
      socket.destroy()
      if (!refused) throw new Error('Connections are still accepted')
    },
    { timeout: SHUTDOWN_MS_MAX, interval: 20 },
  )
}

/** Appends until the node refuses; gives what was acknowledged. */
async function appendUntilRefused(client: ApiClient, sessionId: string): Promise<SessionEvent[]> {
  const acknowledged: SessionEvent[] = []
  for (;;) {
    try {
      const answer = await client.appendEvent(sessionId, { type: 'load', data: {} }, { newConnection: true })
      if (answer.status === 503) return acknowledged
      acknowledged.push(expectOk(answer))
    } catch (error) {
      if (!(error as NodeJS.ErrnoException).code) throw error
      return acknowledged
    }
  }
}

describe('SIGTERM', () => {
  it('is not held up by a kept connection that is idle', async () => {
    const node = await service.startNode()
    const client = await service.newClient({ node })
    expectOk(await client.listSessions())
    const startedAt = Date.now()
    expect((await node.stop()).code).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(SHUTDOWN_MS_MAX)
  })

  it('is not held up by a kept connection that got its last answer meanwhile', async () => {
    const node = await service.startNode({ ANNALS_DRAIN_MS_MAX: '60000', ANNALS_COMMIT_MS_MAX: '60000' })
    const project = await service.newProject()
    const client = await service.newClient({ token: project.token, node })
    const { id } = expectOk(await client.createSession({}), 201)
    await whileSessionIsHeld(service.databaseUrl, project.id, id, async ({ waiting, release }) => {
      const append = client.appendEvent(id, { type: 'note', data: {} })
      await waiting()
      const stopped = node.stop()
      await refusesConnections(node.url)
      const startedAt = Date.now()
      await release()
      expectOk(await append)
      expect((await stopped).code).toBe(0)
      expect(Date.now() - startedAt).toBeLessThan(SHUTDOWN_MS_MAX)
    })
  })

  it('stops accepting, answers every request that was accepted, and exits 0 within ten seconds', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const { id } = expectOk(await api.createSession({}), 201)
    const node = await service.startNode()
    await whileSessionIsHeld(service.databaseUrl, project.id, id, async ({ waiting, release }) => {
      const accepting = Array.from({ length: 16 }, (_, index) =>
        acceptedAppend(node.url, project.token, id, index),
      )
      const accepted = await Promise.all(accepting)
      await waiting()
      const startedAt = Date.now()
      const stopped = node.stop()
      await refusesConnections(node.url)
      await release()
      const answers = await Promise.all(accepted.map((append) => append.answered))
      const events = answers.map((answer) => expectOk(answer)).sort((a, b) => a.seq - b.seq)
      expect((await stopped).code).toBe(0)
      expect(Date.now() - startedAt).toBeLessThan(SHUTDOWN_MS_MAX)
      expect(expectOk(await api.listEvents(id)).items).toEqual(events)
    })
  })

  it('turns /ready to 503, and leaves /health, for those who still have a connection', async () => {
    const node = await service.startNode()
    const probes = await Promise.all(['/ready', '/health'].map((path) => halfSent(node.url, path)))
    const before = await service.rawClient(undefined, node).request('GET', '/ready')
    expect(before.status).toBe(200)
    const stopped = node.stop()
    await refusesConnections(node.url)
    for (const { socket } of probes) socket.write('Host: annals\r\n\r\n')
    const [ready, health] = (await Promise.all(probes.map(({ closed }) => closed))).map(readRawAnswer)
    expect(ready).toMatchObject({ status: 503, body: '{"status":"stopping"}' })
    expect(health).toMatchObject({ status: 200, body: '{"status":"ok"}' })
    expect((await stopped).code).toBe(0)
  })

  it('in the middle of a load of 16 appenders loses nothing that was answered', async () => {
    const project = await service.newProject()
    const node = await service.startNode()
    const client = await service.newClient({ token: project.token, node })
    const api = await service.newClient({ token: project.token })
    const { id } = expectOk(await api.createSession({}), 201)
    const appenders = Array.from({ length: 16 }, () => appendUntilRefused(client, id))
    await vi.waitFor(async () => expect(expectOk(await api.listEvents(id)).has_more).toBe(true), 10_000)
    const startedAt = Date.now()
    expect((await node.stop()).code).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(SHUTDOWN_MS_MAX)
    const acknowledged = (await Promise.all(appenders)).flat().sort((a, b) => a.seq - b.seq)
    const stored = await walkPages((cursor) => api.listEvents(id, { limit: 200, cursor }))
    expect(stored).toEqual(acknowledged)
    expect(stored.map((event) => event.seq)).toEqual(stored.map((_, index) => index + 1))
  })
})

const CALLERS = 24
const ASKED_EVERY_MS = 50
/** A caller that never rests would only keep the processors busy until the node is gone. */
const REST_MS = 20

/** Sends each new connection to the first node whose /ready is 200, as a load balancer does. */
async function balance(urls: string[]) {
  let ready = urls
  let isAsking = true
  const asking = (async () => {
    while (isAsking) {
      const answers = await Promise.all(
        urls.map((url) =>
          fetch(`${url}/ready`).then(
            ({ status }) => status === 200,
            () => false,
          ),
        ),
      )
      ready = urls.filter((_, index) => answers[index])
      await sleep(ASKED_EVERY_MS)
    }
  })()
  const server = createServer((inward) => {
    const { hostname, port } = new URL(ready[0]!)
    const onward = connect(Number(port), hostname)
    inward.pipe(onward).pipe(inward)
    for (const [one, other] of [
      [inward, onward],
      [onward, inward],
    ] as const)
      one.on('error', () => other.resetAndDestroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isReady: (url: string) => ready.includes(url),
    async close() {
      isAsking = false
      server.close()
      await asking
    },
  }
}

describe('SIGTERM with ANNALS_SHUTDOWN_DELAY_MS', () => {
  it.each([
    ['one process', []],
    ['several workers', ['--workers', '2']],
  ])('resets no connection of 24 callers that keep theirs open: %s', async (_, args) => {
    const env = { DATABASE_URL: service.databaseUrl, ANNALS_SHUTDOWN_DELAY_MS: '4000' }
    const leaving = await startServer(env, args)
    const staying = service.node
    const balancer = await balance([leaving.url, staying.url])
    const project = await service.newProject()
    const client = apiClient(balancer.url, project.token)
    const { id } = expectOk(await client.createSession({}), 201)
    let isStopped = false
    let appended = 0
    const append = async () => {
      while (!isStopped) {
        expectOk(await client.appendEvent(id, { type: 'load', data: {} }))
        appended += 1
        await sleep(REST_MS)
      }
    }
    const callers = Promise.all(Array.from({ length: CALLERS }, append))
    await vi.waitFor(() => expect(appended).toBeGreaterThan(2 * CALLERS), 10_000)
    const stopped = leaving.stop()
    await vi.waitFor(() => expect(balancer.isReady(leaving.url)).toBe(false), 10_000)
    // Still accepted and served.
    expectOk(await apiClient(leaving.url, project.token).listEvents(id, { limit: 1 }))
    expect((await stopped).code).toBe(0)
    const before = appended
    await vi.waitFor(() => expect(appended).toBeGreaterThan(before + CALLERS), 10_000)
    isStopped = true
    await callers
    client.close()
    await balancer.close()
  })

  it('does not keep a person waiting who presses Ctrl-C', async () => {
    const node = await service.startNode({ ANNALS_SHUTDOWN_DELAY_MS: '600000' })
    node.child.kill('SIGINT')
    expect((await node.exited).code).toBe(0)
  })
})
