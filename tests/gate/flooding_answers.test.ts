import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { newBytes, putBlob } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, learnerOf } from '../harness/model_project.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

/** What the system's buffers hold between the two, besides what is read. */
const BUFFERED_MAX = 16 * 1024 * 1024
const SENT_MAX = 4 * BUFFERED_MAX
const PIECES = Buffer.from('HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n'.repeat(2_000))

const ends: Array<() => unknown> = []
afterAll(() => Promise.all(ends.map((end) => end())))

/** A server that answers each request with informational answers, for as long as they are taken. */
async function flood() {
  const connections: { sent: number; open: boolean }[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const connection = { sent: 0, open: true }
    sockets.add(socket)
    const send = () => {
      while (socket.writable && connection.sent < SENT_MAX) {
        connection.sent += PIECES.length
        if (!socket.write(PIECES)) return
      }
    }
    socket.on('error', () => {}).on('drain', send)
    socket.once('close', () => {
      connection.open = false
      sockets.delete(socket)
    })
    socket.once('data', () => {
      connections.push(connection)
      send()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections }
}

const directory = await mkdtemp(join(tmpdir(), 'annals-flooded-'))
ends.push(() => rm(directory, { recursive: true, force: true }))
const [store, issuer, anchors, receiver, model] = await Promise.all(Array.from({ length: 5 }, flood))
const service = useService({
  ANNALS_S3_BUCKET: 'bucket',
  ANNALS_S3_ENDPOINT: store!.url,
  ANNALS_S3_ACCESS_KEY_ID: 'key',
  ANNALS_S3_SECRET_ACCESS_KEY: 'secret',
  ANNALS_OIDC_ISSUER: issuer!.url,
  ANNALS_OIDC_CLIENT_ID: 'annals',
  ANNALS_OIDC_CLIENT_SECRET: 'secret',
  ANNALS_PUBLIC_URL: 'http://127.0.0.1',
  ANNALS_PROOF_ANCHOR: anchors!.url,
  ANNALS_PROOF_KEY: join(directory, 'key.pem'),
  ANNALS_PROOF_ANCHOR_MS: '200',
})

type Server = Awaited<ReturnType<typeof flood>>

/** Who asks others, and what makes it ask. */
const CLIENTS: Record<string, [server: Server, ask: () => Promise<unknown>]> = {
  'a webhook': [
    receiver!,
    async () => {
      const api = await service.newClient()
      const secret = `whsec_${randomBytes(32).toString('base64')}`
      const body = { url: `${receiver!.url}/hook`, events: ['event'], secret }
      expectOk(await api.request('POST', '/api/v1/webhooks', { body }), 201)
      expectOk(await (await newSessionLog(api)).addEvent('note'))
    },
  ],
  'a model': [
    model!,
    async () => {
      const { id, token } = await service.newProject()
      const body = { model: { url: `${model!.url}/v1`, name: 'flood', key: 'key-of-the-model' } }
      expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${id}`, { body }))
      const learner = learnerOf(service.databaseUrl, await service.newClient({ token }), id)
      await learner.addRun(await learner.newSpace('suggest'), 'ada', [agent('Hello.')], { reward: 1 })
    },
  ],
  'an object store': [
    store!,
    async () => {
      const { token } = await service.newProject()
      expect((await putBlob(service.node.url, token, newBytes(100))).status).toBe(503)
    },
  ],
  'an issuer of identities': [
    issuer!,
    async () => {
      const start = await fetch(`${service.node.url}/console/oidc/start`, { redirect: 'manual' })
      expect(start.headers.get('location') ?? '').not.toContain(issuer!.url)
    },
  ],
  'a receiver of anchors': [
    anchors!,
    async () => {
      const project = await service.newProject()
      const log = await newSessionLog(await service.newClient({ token: project.token }))
      const body = { proof: true }
      expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, { body }))
      await vi.waitFor(async () => {
        expectOk(await log.addEvent('waiting'))
        expect(anchors!.connections).not.toEqual([])
      }, 20_000)
    },
  ],
}

describe.skipIf(reasonForNoOwnDatabase())('informational answers without end', () => {
  it.each(Object.entries(CLIENTS))('are cut at once where %s sends them', async (_who, [server, ask]) => {
    await ask()
    const hasEnded = () => server.connections.some(({ sent, open }) => !open || sent > BUFFERED_MAX)
    await expect.poll(hasEnded).toBe(true)
    expect(Math.max(...server.connections.map(({ sent }) => sent))).toBeLessThan(BUFFERED_MAX)
  })
})
